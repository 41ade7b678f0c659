package dbhealth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

const longRekey = day // without a step: warning above

var rekeyStalled = Rule{
	ID: "rekey-stalled", Area: "rekey",
	Means:  "a replacement of keys is incomplete, and had no step for a day: each INSERT sets both keys",
	Remedy: "take the next step, or `sortkey rekey abort`",
	check: func(ctx context.Context, e *Examination) error {
		schemas, err := rekey.Schemas(ctx, e.db)
		if err != nil {
			return err
		}
		for _, schema := range schemas {
			s, err := rekey.ReadStatus(ctx, e.db, rekey.Options{Config: e.Config, Schema: schema})
			switch {
			case pgerror.State(err) == pgerror.InsufficientPrivilege:
				e.add(Unknown, "", schema, pgerror.Message(err), "connect as the role that runs sortkey rekey")
				continue
			case errors.Is(err, migrations.ErrUntrusted):
				e.add(Warning, "", schema, strings.TrimPrefix(err.Error(), "rekey: read status: "), "don't run sortkey rekey with this schema, unless you connect as its owner")
				continue
			case err != nil:
				return err
			case s.Step == "":
				continue // it has just ended
			}
			var tables []string
			for _, k := range s.Spec.Keys {
				tables = append(tables, k.Table)
			}
			now := e.serverNow()
			detail := fmt.Sprintf("keys of %s: the next step is %s, the last change was %s", strings.Join(tables, ", "), s.Next, distance(s.UpdatedAt, now))
			if now.Sub(s.UpdatedAt) < longRekey {
				e.add(OK, "", schema, detail, "")
				continue
			}
			flag := ""
			if schema != rekey.DefaultSchema {
				flag = " --views " + schema
			}
			e.add(Warning, "", schema, detail, fmt.Sprintf("run sortkey rekey %s%s, or sortkey rekey abort%[2]s; until then, each INSERT sets both keys", s.Next, flag))
		}
		return nil
	},
}
