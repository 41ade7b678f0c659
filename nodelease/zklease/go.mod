module github.com/sortkey/sortkey/nodelease/zklease

go 1.26.0

replace github.com/sortkey/sortkey => ../../

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/sortkey/sortkey v0.0.0-00010101000000-000000000000
)

require github.com/google/uuid v1.6.0 // indirect
