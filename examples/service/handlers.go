package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

const (
	requestTimeout = 5 * time.Second
	pageSize       = 100     // orders
	maxBody        = 1 << 16 // bytes
	maxKey         = 255     // bytes of an Idempotency-Key; an index entry of Postgres has at most 2704
)

// A shop has the handlers. GORM and pgx use the same pool.
type shop struct {
	db   *gorm.DB
	pool *pgxpool.Pool
	log  *slog.Logger
}

// routes returns the handler of all requests of clients.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /customers", s.handle(s.createCustomer))
	mux.HandleFunc("GET /customers/{id}/orders", s.handle(s.ordersOfCustomer))
	mux.HandleFunc("POST /orders", s.handle(s.createOrder))
	mux.HandleFunc("GET /orders/{id}", s.handle(s.order))
	mux.HandleFunc("GET /orders", s.handle(s.orders))
	mux.HandleFunc("/", s.handle(unrouted(mux)))
	return mux
}

// unrouted returns the handler of requests for the pattern "/" of a mux, which have no other
// route: status 404, or 405 if the path has a route with another method.
func unrouted(mux *http.ServeMux) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if _, pattern := mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL}); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			return errNoRoute
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return errNoMethod
	}
}

// handle limits the duration and the body of a request, replies to errors, and logs the
// request.
func (s *shop) handle(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		answer := &response{w, http.StatusOK}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		err := f(answer, r.WithContext(ctx))
		if err != nil {
			fail(answer, err)
		}
		level := slog.LevelInfo
		// If the context has ended, the client is gone, or sent its body too slowly. It still
		// gets a status: without one, the server would send 200.
		if answer.status >= http.StatusInternalServerError && r.Context().Err() == nil {
			level = slog.LevelError
		}
		s.log.Log(ctx, level, "request", "method", r.Method, "path", r.URL.Path,
			"status", answer.status, "seconds", time.Since(begun).Seconds(), "error", err)
	}
}

// A response keeps the status for the log.
type response struct {
	http.ResponseWriter
	status int
}

func (w *response) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// createCustomer: POST /customers {"name": "Ada"}
func (s *shop) createCustomer(w http.ResponseWriter, r *http.Request) error {
	// A client can't choose an ID, so the body has a type without one.
	in, err := body[struct {
		Name string `json:"name"`
	}](r)
	if err != nil {
		return err
	}
	if in.Name == "" {
		return badRequest{errors.New("want a name")}
	}
	if err := storable("name", in.Name); err != nil {
		return err
	}
	customer := Customer{Name: in.Name}
	if err := s.db.WithContext(r.Context()).Create(&customer).Error; err != nil {
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("/customers/%v/orders", customer.ID))
	return replyJSON(w, http.StatusCreated, customer)
}

// createOrder: POST /orders {"customer_id": "brpk4q72egf2m63l", "item": "tea", "quantity": 2}
//
// If a client gets no answer, or status 503, the order may exist or not. The client
// repeats the request with the same Idempotency-Key, and gets the ID of the one order. The
// keys of a customer don't concern other customers.
func (s *shop) createOrder(w http.ResponseWriter, r *http.Request) error {
	in, err := body[struct {
		CustomerID CustomerID `json:"customer_id"`
		Item       string     `json:"item"`
		Quantity   int        `json:"quantity"`
	}](r)
	if err != nil {
		return err
	}
	if in.CustomerID.IsZero() || in.Item == "" || in.Quantity < 1 {
		return badRequest{fmt.Errorf("want customer_id, item and a quantity above 0, got %q, %q and %d", in.CustomerID, in.Item, in.Quantity)}
	}
	key := r.Header.Get("Idempotency-Key")
	if err := errors.Join(storable("item", in.Item), storable("Idempotency-Key", key)); err != nil {
		return err
	}
	if len(key) > maxKey {
		return badRequest{fmt.Errorf("Idempotency-Key: want at most %d bytes, got %d", maxKey, len(key))}
	}
	order := Order{CustomerID: in.CustomerID, Item: in.Item, Quantity: in.Quantity}
	db := s.db.WithContext(r.Context())
	if key != "" {
		order.RequestKey = &key
		db = db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "customer_id"}, {Name: "request_key"}}, DoNothing: true})
	}
	created := db.Create(&order)
	if created.Error != nil {
		return created.Error
	}
	if created.RowsAffected == 0 { // an earlier request had the key
		order = Order{}
		if err := s.db.WithContext(r.Context()).Take(&order, "customer_id = ? AND request_key = ?", in.CustomerID, key).Error; err != nil {
			return err
		}
		if order.Item != in.Item || order.Quantity != in.Quantity {
			return errKeyReused
		}
	}
	w.Header().Set("Location", fmt.Sprintf("/orders/%v", order.ID))
	return replyJSON(w, http.StatusCreated, order)
}

// order: GET /orders/ord_779811650940178432
func (s *shop) order(w http.ResponseWriter, r *http.Request) error {
	id, err := parseID[OrderID](r.PathValue("id"))
	if err != nil {
		return err
	}
	var order Order
	if err := s.db.WithContext(r.Context()).Take(&order, "id = ?", id).Error; err != nil {
		return err
	}
	return replyJSON(w, http.StatusOK, order)
}

// orders: GET /orders?since=2026-11-22T00:00:00Z&after=ord_779811650940178432
//
// It replies with one page of orders. Both parameters are optional: since selects a range
// of primary keys, and after is the last ID of the previous page.
func (s *shop) orders(w http.ResponseWriter, r *http.Request) error {
	since, err := param(r, "since", parseTime)
	if err != nil {
		return err
	}
	after, err := param(r, "after", parseID[OrderID])
	if err != nil {
		return err
	}
	orders := []Order{}
	err = s.db.WithContext(r.Context()).Scopes(
		gormplugin.CreatedBetween("", since, time.Time{}),
		gormplugin.PageAfter("", after),
	).Limit(pageSize).Find(&orders).Error
	if err != nil {
		return err
	}
	return replyJSON(w, http.StatusOK, orders)
}

// ordersOfCustomer: GET /customers/brpk4q72egf2m63l/orders, the newest orders, read with pgx
func (s *shop) ordersOfCustomer(w http.ResponseWriter, r *http.Request) error {
	id, err := parseID[CustomerID](r.PathValue("id"))
	if err != nil {
		return err
	}
	rows, _ := s.pool.Query(r.Context(),
		"SELECT id, customer_id, item, quantity FROM orders WHERE customer_id = $1 ORDER BY id DESC LIMIT $2", id, pageSize)
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByName[Order])
	if err != nil {
		return err
	}
	return replyJSON(w, http.StatusOK, orders)
}

// body decodes the JSON in the body of a request.
func body[T any](r *http.Request) (v T, err error) {
	data, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return v, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return v, errTooSlow
	case err != nil:
		return v, badRequest{errors.New("body: can't be read")}
	case !utf8.Valid(data): // json.Unmarshal would replace these bytes
		return v, badRequest{errors.New("body: want UTF-8")}
	}
	err = json.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return v, badRequest{fmt.Errorf("body: %w", err)}
	case errors.As(err, &wrong): // its text names Go types
		return v, badRequest{fmt.Errorf("body: %s: got a JSON %s", cmp.Or(wrong.Field, "want an object"), wrong.Value)}
	case err != nil:
		return v, badRequest{errors.New("body: " + idtype.PublicMessage(err))}
	}
	// Unmarshal ignores fields that v lacks, such as misspelled ones.
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(T)); err != nil {
		return v, badRequest{errors.New("body: " + strings.TrimPrefix(err.Error(), "json: "))}
	}
	return v, nil
}

// parseID parses the ID in a URL.
func parseID[V any, P interface {
	*V
	encoding.TextUnmarshaler
}](s string) (V, error) {
	id, err := idtype.Parse[V, P](s)
	if err != nil {
		err = badRequest{errors.New(idtype.PublicMessage(err))}
	}
	return id, err
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		err = fmt.Errorf("want a time such as 2026-11-22T00:00:00Z, got %.40q", s)
	}
	return t, err
}

// storable returns an error if Postgres can't store a text.
func storable(name, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return badRequest{fmt.Errorf("%s: want UTF-8 without NUL characters, got %q", name, text)}
	}
	return nil
}

// param parses a parameter of the URL. If the URL lacks it, param returns zero.
func param[T any](r *http.Request, name string, parse func(string) (T, error)) (v T, err error) {
	if text := r.URL.Query().Get(name); text != "" {
		if v, err = parse(text); err != nil {
			err = badRequest{fmt.Errorf("parameter %s: %w", name, err)}
		}
	}
	return v, err
}

func replyJSON(w http.ResponseWriter, status int, v any) error {
	return reply(w, status, "application/json", v)
}

func reply(w http.ResponseWriter, status int, contentType string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // fails if the client is gone
	return nil
}
