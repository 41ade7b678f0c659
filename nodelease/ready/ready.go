package ready

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A Checker reports whether a part of the process is ready. Ready returns nil, or the
// reason why the part isn't ready. It must return quickly, and be safe for concurrent use.
type Checker interface{ Ready() error }

// While returns a Checker that is ready until ctx ends. If ctx ends when the process begins to
// shut down, a load balancer sends no more requests while the process serves the last ones.
func While(ctx context.Context) Checker { return while{ctx} }

type while struct{ ctx context.Context }

func (w while) Ready() error {
	if w.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("ready: this process is stopping: %w", context.Cause(w.ctx))
}

// Handler returns a handler for GET and HEAD requests. If all checks are ready, it responds
// with status 200 and the text ok. Otherwise it responds with status 503 and one line per
// reason. The reasons can name pools, holders and servers, so don't expose the handler to
// the public.
func Handler(checks ...Checker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed; want GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		var reasons strings.Builder
		for _, c := range checks {
			if err := c.Ready(); err != nil {
				reasons.WriteString(strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if reasons.Len() > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			reasons.WriteString("ok\n")
		}
		_, _ = io.WriteString(w, reasons.String())
	})
}
