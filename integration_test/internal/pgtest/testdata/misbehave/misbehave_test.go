// Package misbehave contains tests that fail or crash, and two for -short. The tests of pgtest
// run them in a separate process. A test that is ended from outside waits until its stdin closes.
package misbehave

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	forcontainer "github.com/testcontainers/testcontainers-go/wait"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, TestQuick, TestSubtests) }

func wait() { _, _ = io.Copy(io.Discard, os.Stdin) }

func TestQuick(*testing.T) { fmt.Println("quick") }

func TestSubtests(t *testing.T) {
	t.Run("subtest", func(*testing.T) { fmt.Println("subtest") })
}

func TestDatabase(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "select 1")
		fmt.Println("url", db.URL)
		wait()
	})
}

func TestFail(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		if _, err := db.Conn(t).Exec(t.Context(), "select nonsense"); err != nil {
			t.Error(err)
		}
	})
}

func TestFailWithContainer(t *testing.T) {
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		server, err := db.Container().Inspect(t.Context())
		pgtest.Must(t, err)
		pgtest.Container(t, server.Config.Image,
			testcontainers.WithCmd("sh", "-c", "echo said in the $0", "container"),
			testcontainers.WithWaitStrategy(forcontainer.ForExit().WithExitTimeout(time.Minute)))
		t.Error("on purpose")
	})
}

var unfillable = pgtest.NewTemplate(func(t *testing.T, _ *pgtest.DB) {
	fmt.Println("filling")
	t.Error("on purpose")
})

func TestUnfillable(t *testing.T) {
	for range 2 {
		unfillable.One(t, func(*testing.T, *pgtest.DB) { fmt.Println("running") })
		unfillable.OneReused(t, func(*testing.T, *pgtest.DB) { fmt.Println("running") })
	}
}

func TestFailReused(t *testing.T) {
	template := pgtest.NewTemplate(func(*testing.T, *pgtest.DB) {})
	var failed string
	template.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		failed = db.Name
		t.Error("on purpose")
	})
	template.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		exists := "select exists (select from pg_database where datname = '" + failed + "')"
		fmt.Println("reused:", db.Name == failed, "exists:", pgtest.Value[bool](t, db.Conn(t), exists))
	})
}

func TestNoImage(t *testing.T) {
	t.Log("got", pgtest.DebianImage(t, "misbehave", "no-such-release", "bash"))
}

func TestPanic(t *testing.T) {
	pgtest.EachContainer(t, func(_ *testing.T, db *pgtest.DB) {
		fmt.Println("container", db.Container().GetContainerID())
		wait()
		panic("on purpose")
	})
}

func TestExit(t *testing.T) {
	pgtest.OneServer(t, func(_ *testing.T, db *pgtest.DB) {
		fmt.Println("container", db.Container().GetContainerID())
		wait()
		os.Exit(3)
	})
}

func TestPair(t *testing.T) {
	pgtest.OnePair(t, func(_ *testing.T, a, _ *pgtest.DB, _ *pgtest.Link) {
		fmt.Println("container", a.Container().GetContainerID())
		wait()
	})
}

func TestNeedsContainers(t *testing.T) {
	pgtest.NeedsContainers(t)
}
