//go:build unix

package service

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/tsenart/vegeta/v12/lib"
)

// verify checks the results of a run, and reports them. It returns the p99 of the requests
// outside of the faults.
func (r *run) verify(t *testing.T) (p99 time.Duration) {
	t.Helper()
	for _, i := range r.instances {
		r.counts.add(t, i)
	}
	o := outcome{rows: r.excuse(), margin: time.Hour}
	for i := range r.faults {
		f := &r.faults[i]
		after := r.normalAfter(f)
		if after > r.ttl+slack {
			r.tooLate("%s: expected normal operation within %v, got %v", f.name, r.ttl+slack, after)
		}
		if f.name == cut {
			o.margin = min(o.margin, r.unreadyFirst(t, f))
		}
		row := o.rows[f.name]
		row.times++
		row.lasted, row.normal = max(row.lasted, f.ended.Sub(f.begun)), max(row.normal, after)
	}
	// Each instance loses both numbers at least once, in the cut.
	if least := 2 * len(r.instances); r.counts.losses < least || r.counts.reacquisitions < least {
		t.Errorf("expected at least %d losses and reacquisitions of node numbers, got %d and %d", least, r.counts.losses, r.counts.reacquisitions)
	}
	o.resent = r.traffic.resend(t, &http.Client{Transport: r.balancer, Timeout: clientTimeout})
	o.acknowledged, o.lost = r.traffic.check(t, r.db)
	if o.acknowledged < r.rate*10 {
		t.Errorf("expected at least %d acknowledged rows, got %d: the test proves little", r.rate*10, o.acknowledged)
	}
	violations := 0
	for _, i := range r.instances {
		violations += strings.Count(i.log.last(1<<30), "SQLSTATE 23505") // unique_violation
	}
	if violations > 0 {
		t.Errorf("expected no unique violations in the logs, got %d", violations)
	}
	o.repeated = violations + len(r.traffic.repeats)
	for _, result := range r.results {
		o.all.Add(result)
		if r.during(result.Timestamp, result.End()) < 0 {
			o.quiet.Add(result)
		}
	}
	o.all.Close()
	o.quiet.Close()

	text := r.report(&o)
	t.Log("\n" + text)
	if len(r.late) == 0 {
		appendReport(t, text)
	} else {
		for _, i := range r.instances {
			t.Logf("instance %s lost node numbers:\n%s", i.name, strings.Join(regexp.MustCompile(`.*"node number lost".*`).FindAllString(i.log.last(1<<30), 20), "\n"))
		}
	}
	return o.quiet.Latencies.P99
}

// An outcome is the outcome of a run.
type outcome struct {
	all, quiet         vegeta.Metrics       // quiet covers the requests outside of the faults
	acknowledged, lost int                  // rows
	repeated           int                  // IDs
	resent             int                  // orders
	margin             time.Duration        // from a failing /readyz to the first failed request
	rows               map[string]*faultRow // by name
}

// report returns the outcome in Markdown.
func (r *run) report(o *outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Claims in %s, TTL %v\n\n", r.store, r.ttl)
	fmt.Fprintf(&b, "%s, %s, %s, %d CPUs, Postgres %s.\n\n", time.Now().UTC().Format(time.DateOnly), runtime.Version(), processor(), runtime.NumCPU(), r.db.Version)
	fmt.Fprintf(&b, "| | |\n|---|--:|\n")
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	line("requests", "%d", o.all.Requests)
	line("per second", "%.0f", o.all.Rate)
	line("p50, p99 and maximum outside of the faults", "%s, %s, %s", ms(o.quiet.Latencies.P50), ms(o.quiet.Latencies.P99), ms(o.quiet.Latencies.Max))
	line("p50, p99 and maximum of all requests", "%s, %s, %s", ms(o.all.Latencies.P50), ms(o.all.Latencies.P99), ms(o.all.Latencies.Max))
	line("failed requests", "%d", len(r.problems))
	line("acknowledged rows", "%d", o.acknowledged)
	line("lost rows", "%d", o.lost)
	line("repeated IDs", "%d", o.repeated)
	line("orders not acknowledged, sent again with their key", "%d", o.resent)
	line("node numbers lost", "%d", r.counts.losses)
	line("node numbers reacquired", "%d", r.counts.reacquisitions)
	line("time from a failing /readyz to the first failed request, at least", "%.1f s", o.margin.Seconds())
	fmt.Fprintf(&b, "\n| fault | times | lasted at most | failed requests | normal after at most |\n|---|--:|--:|---|--:|\n")
	for _, f := range r.faults[:len(r.plan())] { // the first round
		row := o.rows[f.name]
		fmt.Fprintf(&b, "| %s | %d | %.1f s | %s | %.1f s |\n", f.name, row.times, row.lasted.Seconds(), listed(row.causes), row.normal.Seconds())
	}
	return b.String() + "\n"
}

// tooLate records a failure that can also mean that the machine is too busy.
func (r *run) tooLate(format string, args ...any) {
	r.late = append(r.late, fmt.Sprintf(format, args...))
}

// A faultRow is a row of the report: the effects of all injections of a fault.
type faultRow struct {
	times          int
	lasted, normal time.Duration
	causes         map[string]int // counts of failed requests
}

// excuse checks that each failed request is the effect of a fault. It returns a row per
// fault with the causes of failed requests.
func (r *run) excuse() map[string]*faultRow {
	rows, unexpected := map[string]*faultRow{}, map[string]int{}
	for _, f := range r.faults {
		rows[f.name] = &faultRow{causes: map[string]int{}}
	}
	for _, p := range r.problems {
		i := r.during(p.begun, p.ended)
		if i < 0 {
			unexpected["without a fault: "+p.cause]++
			continue
		}
		f := r.faults[i]
		rows[f.name].causes[p.cause]++
		if f.errors == "" || !regexp.MustCompile(f.errors).MatchString(p.cause) {
			unexpected[f.name+": "+p.cause]++
		}
	}
	for what, n := range unexpected {
		r.tooLate("expected no such failed requests, got %d: %s", n, what)
	}
	return rows
}

// normalAfter returns the time from the end of a fault until all instances were ready
// and no request failed any more.
func (r *run) normalAfter(f *happened) time.Duration {
	last := f.ended
	for _, p := range r.problems {
		if p.begun.After(last) && p.begun.Before(f.over) {
			last = p.begun
		}
	}
	for _, i := range r.instances {
		for _, c := range r.balancer.changesOf(i, f.ended) {
			if c.ready && c.at.After(last) && c.at.Before(f.over) {
				last = c.at
			}
		}
	}
	return last.Sub(f.ended)
}

// unreadyFirst checks that each instance was found to be not ready before its first
// request failed for want of an ID. It returns the shortest time between the two.
func (r *run) unreadyFirst(t *testing.T, f *happened) time.Duration {
	t.Helper()
	margin := time.Hour
	for _, i := range r.instances {
		var first problem
		for _, p := range r.problems {
			if p.mints && p.instance == i.name && p.begun.After(f.begun) && p.begun.Before(f.over) && (first.cause == "" || p.begun.Before(first.begun)) {
				first = p
			}
		}
		changes := r.balancer.changesOf(i, f.begun)
		switch {
		case first.cause == "":
			t.Errorf("expected requests to instance %s to fail during the cut", i.name)
		case len(changes) == 0 || changes[0].ready || changes[0].at.After(first.begun):
			r.tooLate("expected instance %s to be not ready before a request failed at %v: %s, got these changes: %v", i.name, first.begun, first.cause, changes)
		default:
			margin = min(margin, first.begun.Sub(changes[0].at))
		}
	}
	return margin
}

// listed returns counts as text, such as "3 × no answer".
func listed(counts map[string]int) string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[cause], cause))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, "; ")
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// processor returns the name of the CPU.
func processor() string {
	if info, err := cpu.Info(); err == nil && len(info) > 0 {
		return info[0].ModelName
	}
	return runtime.GOARCH
}

// leaseCounts are sums over all processes of the service.
type leaseCounts struct{ losses, reacquisitions int }

// add adds the counters of a process that runs.
func (c *leaseCounts) add(t testing.TB, i *instance) {
	t.Helper()
	text, err := i.get("/metrics", time.Minute)
	must(t, err)
	for name, sum := range map[string]*int{"losses": &c.losses, "reacquisitions": &c.reacquisitions} {
		// One of the orders' generator, and one of the customers' generator.
		found := regexp.MustCompile(`(?m)^sortkey_lease_`+name+`_total\{.*\} (\d+)$`).FindAllStringSubmatch(text, -1)
		if len(found) != 2 {
			t.Fatalf("expected two counters of %s, got %q in:\n%s", name, found, text)
		}
		for _, f := range found {
			n, err := strconv.Atoi(f[1])
			must(t, err)
			*sum += n
		}
	}
}
