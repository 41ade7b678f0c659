package main

import (
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// Each of the shop's tables uses another ID type. A model only
// declares the type of its key, and the plugin fills the key. The compiler
// rejects the ID of another model.

// A Customer has an 80-bit ID in a uuid column. One of its bytes is free for the
// application: here it holds the kind of the row.
type Customer struct {
	ID     idtype.SnoOf[Customer]
	Name   string
	Orders []Order
	Visits []Visit
}

// IDMeta returns the metabyte of customer IDs.
func (Customer) IDMeta() byte { return 'c' }

// An Order has a 63-bit ID in a bigint column, the default choice.
type Order struct {
	ID         idtype.SnowflakeOf[Order]
	CustomerID idtype.SnoOf[Customer]
	Lines      []OrderLine
}

// IDPrefix returns the prefix of order IDs in text, JSON and logs. The column
// doesn't store it.
func (Order) IDPrefix() string { return "ord" }

// An OrderLine has a 53-bit ID, which JavaScript can hold as a number.
type OrderLine struct {
	ID       idtype.SnowflakeSIOf[OrderLine]
	OrderID  idtype.SnowflakeOf[Order]
	Article  string
	Quantity int
}

// A Visit has a 64-bit ID. Such IDs spread over the key space instead of sorting
// by time.
type Visit struct {
	ID         idtype.Spread64Of[Visit]
	CustomerID idtype.SnoOf[Customer]
	Page       string
}

// An Event has a 60-bit ID with 10 characters as text, and needs no node number.
type Event struct {
	ID   idtype.UID60Of[Event]
	Kind string
}

// lineLayout counts from a time before the shop opened.
var lineLayout = idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

// keys returns a generator for each ID type. The node numbers are 0, which is
// right for one process; each further process needs its own numbers.
func keys() ([]gormplugin.Binding, error) {
	customers, err := idtype.NewSnoGenerator(idtype.SnoConfig{})
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

// ada returns a customer with two orders and two visits, all without IDs.
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

// eventsOf returns n events with IDs spread evenly over a day.
func eventsOf(day time.Time, n int) ([]Event, error) {
	at := day
	uid60s, err := idtype.NewUID60Generator(idtype.UID60Config{
		Clock: func() time.Time { return at },
	})
	if err != nil {
		return nil, err
	}
	gen := idtype.GeneratorOf[idtype.UID60Of[Event]](uid60s)
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
