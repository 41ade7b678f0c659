package zklease

import "testing"

// The client tries all servers before a pause, also after a server has answered.
func TestHosts(t *testing.T) {
	for _, servers := range [][]string{{"a"}, {"a", "b", "c"}} {
		h := &hosts{}
		if err := h.Init(servers); err != nil || h.Len() != len(servers) {
			t.Fatalf("expected %d servers, got %d, %v", len(servers), h.Len(), err)
		}
		at := 0
		round := func(pauses bool) {
			t.Helper()
			for i := range servers {
				got, pause := h.Next()
				if want := servers[at%len(servers)]; got != want || pause != (pauses && i == 0) {
					t.Errorf("server %d of %q: expected %s, got %s, with a pause before it: %v", i, servers, want, got, pause)
				}
				at++
			}
		}
		round(false)
		round(true)
		round(true)
		h.Next()
		at++
		h.Connected()
		round(false)
		h.Connected()
		round(false)
		round(true)
	}
	if err := (&hosts{}).Init(nil); err == nil {
		t.Error("expected an error without servers")
	}
}
