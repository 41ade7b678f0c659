package main

import (
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// The shop's tables, each with another of the five keys. None of the models
// says more than the type of its key: the plugin fills it.

// A Customer has 80 bits in a uuid column, one byte of them its own: here it
// tells what the ID is an ID of.
type Customer struct {
	ID     idtype.Sno
	Name   string
	Orders []Order
	Visits []Visit
}

// An Order has the usual 64 bits, in a bigint column.
type Order struct {
	ID         idtype.Snowflake
	CustomerID idtype.Sno
	Lines      []OrderLine
}

// An OrderLine has 53 bits, which JavaScript handles as a number.
type OrderLine struct {
	ID       idtype.SnowflakeSI
	OrderID  idtype.Snowflake
	Article  string
	Quantity int
}

// A Visit has 64 bits that spread over the key space instead of ordering by
// time.
type Visit struct {
	ID         idtype.Spread64
	CustomerID idtype.Sno
	Page       string
}

// An Event has 60 bits, 10 characters in a URL, and needs no node number.
type Event struct {
	ID   idtype.UID60
	Kind string
}

// customerMeta is the metabyte of customers' IDs.
const customerMeta = 'c'

// lineLayout counts from a day before the shop opened.
var lineLayout = idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

// keys makes a generator for each of the key types. The node numbers are 0,
// which is right for a shop that runs in one process; each further process
// needs numbers of its own.
func keys() ([]gormplugin.Binding, error) {
	customers, err := idtype.NewSnoGenerator(idtype.SnoConfig{Meta: customerMeta})
	if err != nil {
		return nil, err
	}
	orders, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	if err != nil {
		return nil, err
	}
	lines, err := idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: lineLayout})
	if err != nil {
		return nil, err
	}
	visits, err := idtype.LocalSpread64Generator(0, 0)
	if err != nil {
		return nil, err
	}
	events, err := idtype.NewUID60Generator(idtype.UID60Config{})
	if err != nil {
		return nil, err
	}
	return []gormplugin.Binding{
		gormplugin.For(customers),
		gormplugin.For(orders),
		gormplugin.For(lines),
		gormplugin.For(visits),
		gormplugin.For(events),
	}, nil
}

// ada is a customer with two orders and a visit: nothing in it has an ID yet.
func ada() *Customer {
	return &Customer{
		Name: "Ada",
		Orders: []Order{
			{Lines: []OrderLine{{Article: "tea", Quantity: 2}, {Article: "cups", Quantity: 4}}},
			{Lines: []OrderLine{{Article: "sugar", Quantity: 1}}},
		},
		Visits: []Visit{{Page: "/tea"}, {Page: "/sugar"}},
	}
}

// yesterday mints the IDs of n events that were spread evenly over a day.
func yesterday(day time.Time, n int) ([]Event, error) {
	at := day
	gen, err := idtype.NewUID60Generator(idtype.UID60Config{
		Options: idtype.Options{Clock: func() time.Time { return at }},
	})
	if err != nil {
		return nil, err
	}
	kinds := []string{"view", "view", "view", "basket", "sale"}
	events := make([]Event, n)
	for i := range events {
		at = day.Add(24 * time.Hour / time.Duration(n) * time.Duration(i))
		if events[i].ID, err = gen.Next(); err != nil {
			return nil, err
		}
		events[i].Kind = kinds[i%len(kinds)]
	}
	return events, nil
}
