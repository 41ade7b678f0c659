package rekey

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// The errors of this package wrap one of these, so compare with [errors.Is].
var (
	// ErrRefused means that the tables have a property that rekey can't carry over. The
	// error names each one, with a remedy. Nothing has changed.
	ErrRefused = errors.New("tables can't be rekeyed")
	// ErrLocked means that a step didn't get its locks in Options.LockWait. Repeat the step.
	ErrLocked = errors.New("lock held by another transaction")
	// ErrBusy means that another program runs a step.
	ErrBusy = errors.New("another program runs a step")
	// ErrStep means that the step can't run now. The error names the next step.
	ErrStep = errors.New("not the next step")
	// ErrInconsistent means that a check of the rows or of the catalog failed. The error has
	// the findings.
	ErrInconsistent = errors.New("check failed")
)

// Schema is the schema of the views for programs of the new version, and of the state. [Expand]
// creates it. A database has one job, which can replace many keys.
const Schema = "rekeyed"

// A Format is the type of a new key.
type Format string

// The formats of new keys. The first two are stored as bigint, and the others as uuid.
const (
	Snowflake Format = "snowflake"
	UID60     Format = "uid60"
	Sno       Format = "sno"
	UUID7     Format = "uuid7" // a [idtype.UUID] of version 7
)

// A Spec describes the keys to replace. All of them change in the same steps, so that
// programs need one release.
type Spec struct {
	Keys []Key `json:"keys"`
	// References are columns that refer to a key of Keys without a foreign key. Columns
	// with a foreign key are found by themselves.
	References []Reference `json:"references,omitempty"`
	// NotReferences are columns, such as orders.customer_id, that keep their values,
	// although Inspect takes them for references.
	NotReferences []string `json:"not_references,omitempty"`
	// Literals are objects, such as "view public.report", that compare a key with a constant, and
	// may do so with the new keys, too.
	Literals []string `json:"literals,omitempty"`
}

// A Key is the primary key of a table, with its replacement.
type Key struct {
	// Table is named as in SQL: orders, or shop."Orders". Its primary key has one
	// column, of type smallint, integer, bigint, uuid, text, varchar or char.
	Table string `json:"table"`
	// Format is the type of the new key.
	Format Format `json:"format"`
	// Node is the node number of the IDs that the database creates for rows that
	// programs insert by the old key, and BackfillNode the one of the IDs of existing
	// rows. Both are reserved for that until [Cleanup] or [Abort]; no
	// instance may use them. They differ from each other, and have the range of
	// reserve_node. UID60 and UUID7 have no node numbers, and ignore both.
	Node         int `json:"node"`
	BackfillNode int `json:"backfill_node"`
	// Meta is the metabyte of Snos.
	Meta byte `json:"meta,omitempty"`
	// InPlace keeps the keys of existing rows, and of rows that programs insert by the
	// old key. Only new rows get IDs: from programs of the new version, and after
	// [Contract] from the default. The old key is a smallint, integer or bigint.
	// If all columns are bigint, only the default changes.
	InPlace bool `json:"in_place,omitempty"`
	// Times has the times in the IDs of existing rows. InPlace needs none.
	Times Times `json:"times"`
	// OldKey is an SQL expression for the old keys of rows that programs insert by the new
	// key, such as nextval('public.order_numbers'). Its names need their schemas. Empty: the default of the column; without
	// one, gen_random_uuid() for a uuid, and a ULID for texts with ULIDs.
	OldKey string `json:"old_key,omitempty"`
}

// Times describes the source of the times in IDs of existing rows. IDs of existing rows
// strictly increase with (time, old key). Set one of Column, SQL and Key, or Start alone.
type Times struct {
	// Column is a column of type timestamptz, or of type timestamp with times in UTC. A NULL or
	// infinite time counts as Start, or as the first instant of the format if Start is zero.
	Column string `json:"column,omitempty"`
	// SQL is an expression of type timestamptz over columns of the row, such as
	// to_timestamp(created_ms / 1000.0). It must be immutable. NULL counts as for Column.
	SQL string `json:"sql,omitempty"`
	// Key means that the old keys contain times.
	Key KeyTimes `json:"key,omitempty"`
	// Start is the time of the first row, if no times are known.
	Start time.Time `json:"start,omitzero"`
}

// KeyTimes is the form of old keys that contain times.
type KeyTimes string

// The forms of old keys that contain times.
const (
	KeyUUIDv7 KeyTimes = "uuidv7" // a uuid or a text
	KeyULID   KeyTimes = "ulid"   // a text of 26 characters, or a uuid
)

// A Reference is a column that refers to a key without a foreign key. Its type can be another
// integer type than that of the key, or a text for any key. The new column has the type of the new key.
type Reference struct {
	Table  string `json:"table"`
	Column string `json:"column"` // as in the catalog, without quotes
	To     string `json:"to"`     // a Table of Keys, or another table whose primary key refers to one
	// Where is an SQL expression over other columns of the table, such as
	// subject_type = 'Post', for the rows that refer to To. A column can have a Reference for
	// each of several tables, each with a Where. Other rows keep their values.
	Where string `json:"where,omitempty"`
}

// Options are the options of all steps. The zero value is valid.
type Options struct {
	// Config has the schema of the installed SQL. The layouts come from the installation.
	Config migrations.Config
	// SearchPath is the search_path in which Inspect and Expand look up tables that the Spec names
	// without a schema. Empty: that of the session.
	SearchPath string
	// LockTimeout limits the wait for a lock behind which other sessions wait. 0: 100 ms,
	// which is less than the server's deadlock_timeout. A failed attempt is repeated,
	// with random pauses, for up to LockWait. 0: 10 minutes. Before, a step ends an
	// autovacuum of the tables, which takes deadlock_timeout.
	LockTimeout, LockWait time.Duration
	// BatchTime is the duration that batches of the backfill adapt to. 0: 50 ms. Rows of a
	// batch stay locked for this time.
	BatchTime time.Duration
	// Pause is the share of time in which the backfill pauses, from 0 to below 1.
	Pause float64
	// MaxLag pauses the backfill while a replica or a subscriber is further behind. 0: 10 s.
	// Negative: no limit. The role needs pg_monitor to see replicas.
	MaxLag time.Duration
	// Progress, if set, is called after each batch and each action. Calls don't overlap.
	Progress func(Progress)
}

// A Progress reports the state of a step.
type Progress struct {
	Step        Step
	Action      string        // such as "create index order_lines_order_id_idx"
	Rows, Total int64         // of a backfill: rows of the table that are done, and the estimated row count
	Rate        float64       // rows per second since the start of this call
	Left        time.Duration // estimated; 0: unknown
	Done        bool          // the action is complete
	Waiting     string        // the reason for a pause, such as "replica standby1 is 12s behind"
}

// A Step is a step of a rekey.
type Step string

// The steps, in order. Abort can follow each of the first three, and Undo can follow Contract
// until Cleanup.
const (
	StepExpand   Step = "expand"
	StepBackfill Step = "backfill"
	StepValidate Step = "validate"
	StepContract Step = "contract"
	StepCleanup  Step = "cleanup"
	StepUndo     Step = "undo"
	StepAbort    Step = "abort"
)

// A Plan is the result of [Inspect].
type Plan struct {
	Tables []Table `json:"tables"`
	// Problems must be resolved before Expand.
	Problems []Problem `json:"problems"`
	// Notes are worth reading before Expand.
	Notes   []Problem `json:"notes"`
	Actions []Action  `json:"actions"`
}

// Step returns the actions of a step.
func (p *Plan) Step(step Step) []Action {
	return slices.DeleteFunc(slices.Clone(p.Actions), func(a Action) bool { return a.Step != step })
}

// A Table is a table with columns that change.
type Table struct {
	Name    string   `json:"name"` // schema-qualified, and quoted as in SQL
	Rows    int64    `json:"rows"` // estimated by the server, or counted without statistics
	Columns []Column `json:"columns"`
}

// A Column is a column that changes: a key, or a reference to one.
type Column struct {
	Name    string `json:"name"`     // without quotes
	NewName string `json:"new_name"` // of the new column until Contract, and of the old one afterwards
	OldType string `json:"old_type"`
	NewType string `json:"new_type"`
	To      string `json:"to"` // for a reference, the tables that it refers to, separated by commas
}

// A Problem is a property of the tables, with a remedy.
type Problem struct {
	Object string `json:"object"` // such as "view public.order_report"
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String returns the problem in a line. It quotes names with control characters.
func (p Problem) String() string {
	return trust.Visible(p.Object) + " " + trust.Visible(p.Reason) + "; " + trust.Visible(p.Remedy)
}

// An Action is a part of a step, with the SQL that it runs.
type Action struct {
	Step  Step     `json:"step"`
	Kind  string   `json:"kind"` // ddl, swap, end, index, backfill, check or trial
	Title string   `json:"title"`
	SQL   []string `json:"sql"`
	// Index is the name of the index of a CREATE INDEX CONCURRENTLY, schema-qualified.
	Index string `json:"index,omitempty"`
}

// A Status is the state of a rekey.
type Status struct {
	Spec Spec
	// Step is the last step that was started, and Next the step to run now. Next equals
	// Step if Step is incomplete. If there is no rekey, Next is expand and Step is empty.
	Step, Next Step
	// Action is the title of the action of an incomplete step that runs next.
	Action string
	// Actions are the actions left, in the order of the steps. The last ones belong to Undo and Abort.
	Actions []Action
	// Findings are problems, such as a disabled trigger, with the remedy.
	Findings []string
	// StartedAt and UpdatedAt are times of the server.
	StartedAt, UpdatedAt time.Time
}

func (o Options) withDefaults() (Options, error) {
	if o.Config.Schema == "" {
		o.Config.Schema = migrations.DefaultSchema
	}
	if o.Config.Schema == Schema {
		return o, fmt.Errorf("rekey: Options.Config: schema %s is the one of the views; install the SQL functions in another schema", Schema)
	}
	for _, d := range []struct {
		name    string
		value   *time.Duration
		without time.Duration
	}{
		{"LockTimeout", &o.LockTimeout, 100 * time.Millisecond},
		{"LockWait", &o.LockWait, 10 * time.Minute},
		{"BatchTime", &o.BatchTime, 50 * time.Millisecond},
	} {
		if *d.value == 0 {
			*d.value = d.without
		}
		if *d.value < time.Millisecond {
			return o, fmt.Errorf("rekey: Options.%s: %v is out of range; want 1ms or more, or 0 for %v", d.name, *d.value, d.without)
		}
	}
	if o.MaxLag == 0 {
		o.MaxLag = 10 * time.Second
	}
	if o.Pause < 0 || o.Pause >= 1 {
		return o, fmt.Errorf("rekey: Options.Pause: %v is out of range; want 0 to below 1", o.Pause)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o, nil
}
