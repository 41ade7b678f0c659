// Command tasks serves users and their tasks over HTTP.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/metrics"
)

// A User has a serial key for joins. Clients see the public ID, such as user_01m8m4wrptfhethpbc1qwwkkav.
type User struct {
	ID       uint                `json:"-"`
	PublicID idtype.UUIDOf[User] `json:"id" gorm:"idgen;uniqueIndex"`
	Name     string              `json:"name"`
}

// IDPrefix returns the prefix of users.
func (User) IDPrefix() string { return "user" }

// A Task belongs to a user.
type Task struct {
	ID     idtype.UUIDOf[Task] `json:"id"`
	UserID uint                `json:"-" gorm:"index"`
	Text   string              `json:"text"`
}

// IDPrefix returns the prefix of tasks.
func (Task) IDPrefix() string { return "task" }

func main() {
	handler, err := serve(postgres.Open(os.Getenv("DATABASE_URL")))
	if err == nil {
		err = http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "localhost:8080"), handler)
	}
	log.Fatal(err)
}

// serve opens the database, creates its tables, and returns the routes.
func serve(database gorm.Dialector) (http.Handler, error) {
	ids, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		return nil, err
	}
	db, err := gorm.Open(database)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.Use(gormplugin.New(gormplugin.For(ids))), db.AutoMigrate(&User{}, &Task{})); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(metrics.Generator("ids", ids)))
	s := service{db}
	mux := http.NewServeMux()
	mux.Handle("POST /users", handle(s.createUser))
	mux.Handle("POST /users/{user}/tasks", handle(s.createTask))
	mux.Handle("GET /users/{user}/tasks", handle(s.tasks))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}

type service struct{ db *gorm.DB }

func (s service) createUser(r *http.Request) (any, error) {
	var u User
	if err := json.NewDecoder(r.Body).Decode(&struct{ Name *string }{&u.Name}); err != nil {
		return nil, badRequest{err}
	}
	return &u, s.db.WithContext(r.Context()).Create(&u).Error
}

func (s service) createTask(r *http.Request) (any, error) {
	u, err := s.user(r)
	if err != nil {
		return nil, err
	}
	t := Task{UserID: u.ID}
	if err := json.NewDecoder(r.Body).Decode(&struct{ Text *string }{&t.Text}); err != nil {
		return nil, badRequest{err}
	}
	return &t, s.db.WithContext(r.Context()).Create(&t).Error
}

// tasks returns a page of tasks, the oldest first, after the task in the query.
func (s service) tasks(r *http.Request) (any, error) {
	u, err := s.user(r)
	if err != nil {
		return nil, err
	}
	var after idtype.UUIDOf[Task]
	if text := r.FormValue("after"); text != "" {
		if after, err = idtype.Parse[idtype.UUIDOf[Task]](text); err != nil {
			return nil, badRequest{err}
		}
	}
	const size = 2
	var page struct {
		Tasks []Task              `json:"tasks"`
		Next  idtype.UUIDOf[Task] `json:"next,omitzero"` // missing on the last page
	}
	err = s.db.WithContext(r.Context()).Where("user_id = ?", u.ID).Scopes(gormplugin.PageAfter("", after)).Limit(size + 1).Find(&page.Tasks).Error
	if len(page.Tasks) > size {
		page.Tasks, page.Next = page.Tasks[:size], page.Tasks[size-1].ID
	}
	return page, err
}

// user returns the user in the path.
func (s service) user(r *http.Request) (u User, err error) {
	id, err := idtype.Parse[idtype.UUIDOf[User]](r.PathValue("user"))
	if err != nil {
		return u, badRequest{err}
	}
	return u, s.db.WithContext(r.Context()).Take(&u, "public_id = ?", id).Error
}

// A badRequest is the fault of the client.
type badRequest struct{ error }

// handle writes the result of f as JSON, or its error.
func handle(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		var bad badRequest
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		case errors.As(err, &bad):
			http.Error(w, idtype.PublicMessage(bad.error), http.StatusBadRequest)
		case errors.Is(err, gorm.ErrRecordNotFound):
			http.Error(w, "no such user", http.StatusNotFound)
		default:
			log.Print(err)
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}
}
