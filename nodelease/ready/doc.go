// Package ready answers readiness probes: can this process create IDs?
//
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//	http.Handle("/readyz", ready.Handler(ids, ready.While(ctx)))
//
// With [While], the process isn't ready from when it begins to shut down. Let it serve a few
// seconds longer, until the load balancer has seen that.
//
// The generators of the packages idtype and nodelease have the method of a [Checker], as
// does a Keeper. They don't call the store.
//
// A generator with a claimed number reports a failing store before its calls fail: with
// the default TTL of 30 s, 10 s before. So this probe takes an instance out of service in
// time, and back into service once the store answers:
//
//	readinessProbe:
//	  httpGet: {path: /readyz, port: 8081}
//	  periodSeconds: 2
//	  failureThreshold: 2
//
// Don't use the handler for a liveness probe: a restart repairs neither the store nor the
// clock.
package ready
