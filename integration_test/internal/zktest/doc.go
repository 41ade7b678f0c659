// Package zktest provides ZooKeeper servers for tests.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestClaim(t *testing.T) {
//		server := zktest.Run(t)
//		store, err := zklease.Connect([]string{server.Address}, zklease.Config{})
//		...
//	}
//
// Package pgtest runs the servers in containers. Without Docker, it lists a test that
// needs one as not run. It removes the containers when the test process ends, even if
// the process is killed.
package zktest
