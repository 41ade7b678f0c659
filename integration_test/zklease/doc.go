// Package zklease tests package zklease, the store of node numbers in ZooKeeper, on a real
// server with faults.
//
// # What it shows
//
//   - zklease_test.go: the store passes leasetest.TestStore. TestServer runs all tests that leave
//     the server alone.
//   - faults_test.go: sessions expire, the server restarts or is paused, and connections are cut
//     with requests and answers in them
//   - contention_test.go: 50 stores claim numbers at the same moment
//   - java_test.go: the store shares its znodes with the Java program that it is compatible with
//
// The unit tests of zklease read and write znodes without a server. Package nodelease, next to
// this package, tests the claims of real processes, with the stores in ZooKeeper and Postgres.
//
// # Fixtures
//
// zktest.Run starts a server. A client is a store whose connections a test can cut, or whose
// answers it can hold up. A java acts as a process of the Java program.
//
// # Running
//
//	go test ./zklease -run TestServer/store
//	go test ./zklease -run TestRestart
//
// All tests need containers. They use no Postgres, so POSTGRES_VERSIONS and DATABASE_URL have no
// effect. scripts/image builds the image of ZooKeeper once.
//
// # Cost
//
// About 25 seconds, most of it waiting for sessions to expire, on four containers of ZooKeeper:
// one for TestServer, and one for each test that stops or pauses its server. With -short, no test
// runs.
package zklease
