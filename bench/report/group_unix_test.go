//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestReportInterrupted ends a report while a benchmark runs, which holds a lock
// for as long as it does.
func TestReportInterrupted(t *testing.T) {
	elsewhere(t, "Endless")
	lock, err := filepath.Abs("lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOCK", lock)
	if err := write("bench/endless_test.go", []byte(`package bench

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func BenchmarkEndless(b *testing.B) {
	f, err := os.Create(os.Getenv("LOCK") + ".new")
	if err != nil {
		b.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(f.Name(), os.Getenv("LOCK")); err != nil {
		b.Fatal(err)
	}
	time.Sleep(5 * time.Minute)
}
`)); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log bytes.Buffer
	go func() { ended <- report(ctx, true, "", &log) }()
	await(t, "the benchmark begins", func() bool { return exists(lock) })
	cancel()
	if err := <-ended; err == nil {
		t.Errorf("it ended well:\n%s", &log)
	}

	f, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	await(t, "the benchmark ends, too", func() bool {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

// await polls until something is so, for as long as a slow machine may need to
// build a benchmark.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("expected that %s, it doesn't", what)
		}
	}
}
