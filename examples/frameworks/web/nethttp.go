package web

import (
	"encoding/json"
	"net/http"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// NetHTTP serves orders with package net/http.
func NetHTTP(s Store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", HTTPOrder(s))
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		ids, err := parseOrderIDs(r.URL.Query()["id"])
		if err != nil {
			http.Error(w, idtype.PublicMessage(err), http.StatusBadRequest)
			return
		}
		var customer sqltypes.Optional[key.CustomerID] // an Optional accepts a missing parameter
		if err := customer.UnmarshalParam(r.URL.Query().Get("customer")); err != nil {
			http.Error(w, idtype.PublicMessage(err), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Orders(ids, customer.ID))
	})
	return mux
}

// HTTPOrder handles GET /orders/{id} with package net/http.
func HTTPOrder(s Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := idtype.Parse[key.OrderID](r.PathValue("id"))
		if err != nil {
			http.Error(w, idtype.PublicMessage(err), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Order(id))
	}
}

// parseOrderIDs parses the values of a repeated parameter.
func parseOrderIDs(texts []string) ([]key.OrderID, error) {
	ids := make([]key.OrderID, len(texts))
	for i, text := range texts {
		if err := ids[i].UnmarshalParam(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}
