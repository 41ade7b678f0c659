// Package zktest gives tests ZooKeeper servers.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestClaim(t *testing.T) {
//		server := zktest.Run(t)
//		store, err := zklease.Connect([]string{server.Address}, zklease.Config{})
//		...
//	}
//
// They are in containers, by way of package pgtest: without Docker a test that
// needs one is listed as not run, and a container goes whatever way the test
// process ends.
package zktest
