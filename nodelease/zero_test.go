package nodelease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/filelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// The zero values of types that a constructor returns aren't taken for configured ones.
func TestZeroValues(t *testing.T) {
	const made = "nodelease: the Generator is a zero value; create it with NewGenerator or the constructor of a format"
	const acquired = "nodelease: the Keeper is a zero value; create it with Acquire"
	type generator = nodelease.Generator[idtype.Snowflake]
	for i, c := range []struct {
		want string
		call func()
	}{
		{made, func() { _, _ = new(generator).Next() }},
		{made, func() { _, _ = new(generator).Fill(t.Context(), make([]idtype.Snowflake, 1)) }},
		{made, func() { new(generator).Stats() }},
		{made, func() { new(generator).Remaining() }},
		{made, func() { _ = new(generator).Ready() }},
		{made, func() { new(generator).Keeper() }},
		{made, func() { new(generator).Current() }},
		{made, func() { _ = new(generator).Close() }},
		{acquired, func() {
			_, _ = idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: new(nodelease.Keeper)}})
		}},
		{acquired, func() { new(nodelease.Keeper).After() }},
		{acquired, func() { _ = new(nodelease.Keeper).Attach("", func() int64 { return 0 }) }},
		{acquired, func() { new(nodelease.Keeper).Lost() }},
		{acquired, func() { _ = new(nodelease.Keeper).Err() }},
		{acquired, func() { _ = new(nodelease.Keeper).Ready() }},
		{acquired, func() { new(nodelease.Keeper).Stats() }},
		{acquired, func() { _ = new(nodelease.Keeper).Close() }},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != c.want {
					t.Errorf("call %d: panic %q, want %q", i, got, c.want)
				}
			}()
			c.call()
		}()
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		store nodelease.Store
		want  string
	}{
		{new(filelease.Store), "filelease: the Store is a zero value; create it with New"},
		{filelease.New("", filelease.Config{}), "filelease: the directory is empty; "},
		{new(pglease.Store), "pglease: the Store is a zero value; create it with New"},
		{pglease.New(nil, pglease.Config{}), "pglease: the database is nil; "},
	} {
		_, err1 := c.store.Claim(ctx, pool(1), nodelease.Request{})
		_, err2 := c.store.Renew(ctx, pool(1), nodelease.Claim{}, nodelease.Request{})
		err3 := c.store.Release(ctx, pool(1), nodelease.Claim{}, 0)
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%T: %v, want %q", c.store, err, c.want)
			}
		}
	}
}
