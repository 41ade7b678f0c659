// Package uses tests the recipe for protocol buffers. It compiles only with package pb, which
// TestProto generates.
package uses

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/examples/frameworks/web"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/frameworks/proto/testdata/pb"
)

const first = key.OrderID(779300444248735744)

var ada = idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63l"))

func message(t *testing.T, o web.Order) *pb.Order {
	customer, err := o.CustomerID.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := &pb.Order{Id: o.ID.Int64(), CustomerId: customer}
	if o.ReplacesID != nil {
		m.ReplacesId = o.ReplacesID.String()
	}
	return m
}

func TestOrder(t *testing.T) {
	replaces := first
	for _, o := range []web.Order{{ID: first, CustomerID: ada}, {ID: first + 1, CustomerID: ada, ReplacesID: &replaces}} {
		b, err := proto.Marshal(message(t, o))
		if err != nil {
			t.Fatal(err)
		}
		j, err := protojson.Marshal(message(t, o))
		if err != nil {
			t.Fatal(err)
		}
		if plain := strings.ReplaceAll(string(j), " ", ""); !strings.Contains(plain, `"id":"7793004442487357`) {
			t.Errorf("expected the number of the ID in quotes, got %s", j)
		}
		var fromWire, fromJSON pb.Order
		if err := proto.Unmarshal(b, &fromWire); err != nil {
			t.Error(err)
		}
		if err := protojson.Unmarshal(j, &fromJSON); err != nil {
			t.Error(err)
		}
		for _, m := range []*pb.Order{&fromWire, &fromJSON} {
			if got, err := web.OrderFromProto(m); err != nil || !reflect.DeepEqual(got, o) {
				t.Errorf("expected %+v, got %+v, %v", o, got, err)
			}
		}
	}
	good := message(t, web.Order{ID: first, CustomerID: ada})
	for _, test := range []struct {
		change func(*pb.Order)
		want   string
	}{
		{func(m *pb.Order) { m.Id = -1 }, "idtype: scan -1 into SnowflakeOf[key.Order]"},
		{func(m *pb.Order) { m.CustomerId = []byte("short") }, "want 10 bytes, got 5"},
		{func(m *pb.Order) { m.CustomerId = []byte("1234567890") }, "want the model's metabyte 99 ('c')"},
		{func(m *pb.Order) { m.ReplacesId = "779300444248735744" }, "got no prefix"},
	} {
		m := proto.CloneOf(good)
		test.change(m)
		if _, err := web.OrderFromProto(m); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: expected %s, got %v", m, test.want, err)
		}
	}
}

// The page on frameworks lists these sizes of an ID as int64 and as sint64. As sfixed64 it
// has 8 bytes.
func TestSizes(t *testing.T) {
	for name, id := range map[string]struct {
		value          int64
		varint, zigzag int
	}{
		"Snowflake":         {first.Int64(), 9, 9},
		"UID60":             {idtype.Must(idtype.ParseUID60("xinaS8QBh")).Int64(), 8, 8},
		"positive Spread64": {idtype.Must(idtype.ParseSpread64("7b54ecf2840a0015")).Int64(), 9, 10},
		"negative Spread64": {idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")).Int64(), 10, 9},
	} {
		varint, zigzag := protowire.SizeVarint(uint64(id.value)), protowire.SizeVarint(protowire.EncodeZigZag(id.value))
		if varint != id.varint || zigzag != id.zigzag {
			t.Errorf("%s: expected %d and %d bytes, got %d and %d", name, id.varint, id.zigzag, varint, zigzag)
		}
	}
}
