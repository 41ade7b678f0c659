package guide

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// Maintain creates and removes partitions, for a database without pg_cron.
// Several processes may call it at the same time.
func Maintain(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	steps, err := migrations.MaintainPartitions(ctx, db, migrations.Config{}, migrations.PartitionOptions{})
	for _, s := range steps {
		if s.Err != nil {
			log.WarnContext(ctx, "partition step postponed", "action", s.Action, "partition", s.Partition, "error", s.Err)
			continue
		}
		log.InfoContext(ctx, "partition", "action", s.Action, "partition", s.Partition, "from", s.From, "to", s.To)
	}
	return err
}

// An Event is a row of a table that is partitioned by time.
type Event struct {
	ID   idtype.SnowflakeOf[Event]
	Kind string
}

// EventsOf returns the events of a time window, with GORM.
func EventsOf(db *gorm.DB, from, to time.Time) (events []Event, err error) {
	window := gormplugin.CreatedBetween("", from, to)
	return events, db.Scopes(window).Order("id").Find(&events).Error
}

// CountEvents counts the events of a time window, with database/sql.
func CountEvents(ctx context.Context, db *sql.DB, from, to time.Time) (n int, err error) {
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(from, to)
	if err != nil {
		return 0, err
	}
	return n, db.QueryRowContext(ctx, "SELECT count(*) FROM events WHERE id >= $1 AND id < $2", lo, hi).Scan(&n)
}
