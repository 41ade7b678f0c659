package pgtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm/logger"
)

// A Recorder is a GORM logger that records statements.
type Recorder struct {
	logger.Interface
	mu         sync.Mutex
	statements []string
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder { return &Recorder{Interface: logger.Discard} }

// LogMode returns r unchanged.
func (r *Recorder) LogMode(logger.LogLevel) logger.Interface { return r }

// Trace records a statement.
func (r *Recorder) Trace(_ context.Context, _ time.Time, f func() (sql string, rows int64), _ error) {
	sql, _ := f()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements = append(r.statements, sql)
}

// With returns the statements that begin with prefix, which must be upper case.
func (r *Recorder) With(prefix string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.statements {
		if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(s)), prefix) {
			found = append(found, s)
		}
	}
	return found
}
