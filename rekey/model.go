package rekey

import (
	"fmt"
	"slices"
	"strings"
)

// A relation is a table with columns that change.
type relation struct {
	OID         int64
	Name        string // qualified and quoted
	Plain       string // without schema and quotes
	Schema      string // quoted
	Kind        string // pg_class.relkind
	Partition   bool
	Root        string // of a partition, the partitioned table at the top, qualified and quoted
	Typed       bool   // CREATE TABLE … OF
	NoInherit   string // statements that end inheritance; empty without parents and children
	Owned       bool   // the role may change the table
	RLS         bool
	ForceRLS    bool
	Temporary   bool
	Distributed bool // by Citus, or replicated to its workers
	Rows        float64
	Attributes  int    // columns, with dropped ones
	Identity    string // pg_class.relreplident
	Owner       string // quoted
	columns     []*column
	Grants      []grant
	others      []string // quoted names of the columns that don't change, in order
	settable    []string // without generated columns and others that statements can't set
	// Triggers means that a trigger of the user fires on UPDATE, and AlwaysTriggers that one
	// fires even for session_replication_role replica.
	Triggers, AlwaysTriggers bool
	times                    []timeColumn
	// swapped means that the columns with the new keys have the names of the old ones, as between
	// contract and cleanup.
	swapped bool
}

// quotedPlain returns the name of the view for programs of the new version.
func (r *relation) quotedPlain() string { return strings.TrimPrefix(r.Name, r.Schema+".") }

// A timeColumn can be the source of times.
type timeColumn struct {
	Name, Quoted, Type string
}

// A grant is a privilege on a table, or on a column of it.
type grant struct {
	Privilege, Role string // Role is quoted, or PUBLIC
	Option          bool
	Column          string // quoted; empty for the table
}

// A column is a key, or a reference to one.
type column struct {
	rel       *relation
	Num       int
	Name      string
	Quoted    string
	Type      string // such as character varying(26)
	Collation string // qualified and quoted; empty for a type without collations
	Equal     bool   // texts that differ can be equal
	Base      string // pg_type.typname without domains
	Domain    bool
	Stored    string // Type without domains
	NotNull   bool
	NotNullAs *notNull
	Identity  string
	Generated string
	Default   string
	Sequence  string // of a serial or identity column, qualified
	// SequenceOptions and SequenceGrants create the sequence again.
	SequenceOptions string
	SequenceGrants  []string

	Settings string // statements that set its statistics target and its number of distinct values
	Comment  string
	Grants   []grant
	key      *key // its own, or the first one that it refers to
	root     bool
	targets  []target // of a reference
	fresh    string   // quoted name of the new column until contract, and of the old one afterwards
}

// old and new return the quoted names of the columns with the old and with the new keys.
func (c *column) old() string {
	if c.rel.swapped {
		return c.fresh
	}
	return c.Quoted
}

func (c *column) new() string {
	if c.rel.swapped {
		return c.Quoted
	}
	return c.fresh
}

func (c *column) String() string { return "column " + c.rel.Name + "." + c.Quoted }

// A notNull is a NOT NULL constraint. Before Postgres 18, there are none in the catalog.
type notNull struct {
	Name             string // quoted
	Valid, NoInherit bool
	Comment          string
}

// A key is a Key with its columns.
type key struct {
	Key
	n       int // index in the Spec
	root    *column
	columns []*column
	format  format
	oldExpr string // SQL expression for an old key
	times   *timeColumn
	untimed bool // Times are wrong, which is a problem

	nodeReserved bool // Node was reserved before
}

// A foreignKey is a foreign key with a column that changes.
type foreignKey struct {
	OID        int64
	Name       string // quoted
	Table      int64
	TableName  string // qualified and quoted
	To         int64
	ToName     string
	Columns    []int
	ToColumns  []int
	Valid      bool
	Deferrable bool
	Definition string
	Comment    string
}

// An index is an index with a column that changes.
type index struct {
	OID        int64
	Table      int64
	Name       string // quoted, without schema
	Plain      string
	Unique     bool
	Columns    []int    // of the table; 0 is an expression
	Keys       []string // names of columns, and expressions of others and of generated columns; without included columns
	Types      []string // of Keys
	Findable   bool     // Keys are plain columns with types of pg_catalog
	NullsEqual bool
	Predicate  string
	Expression string // all of it, with the predicate
	Definition string
	Constraint string // quoted; empty for an index without a constraint
	Type       string // p, u or x, of the constraint
	Deferrable bool
	Clustered  bool
	ReplIdent  bool
	Tablespace string // quoted; empty for the default of the database
	Comment    string
	ConComment string
	Valid      bool
	Method     string
	// DefaultOps and DefaultCollations report for each key column whether its operator
	// class, and its collation, is the default.
	DefaultOps, DefaultCollations []bool
	byText                        bool   // a type has no hash function
	fresh                         string // name of the index on the new column, without quotes
}

// A dependent is another object that depends on a column that changes.
type dependent struct {
	Class    string // such as pg_policy
	OID      int64
	Table    int64
	Column   int
	Object   string // from pg_describe_object
	Identity string // from pg_identify_object
	ByType   bool   // it depends on the row type of a view
	Own      bool   // it belongs to the column: its default, the query of a view, or a trigger of a foreign key
}

// A view depends on the columns, perhaps through other views.
type view struct {
	OID        int64
	Kind       string // pg_class.relkind
	Name       string // qualified and quoted
	Plain      string // quoted, without schema
	Definition string // with names as the model's path shows them
	Options    []string
	Owner      string
	Owned      bool
	Comment    string
	Triggers   bool
	Rules      bool
	Groups     bool    // it depends on a primary key by GROUP BY
	Reads      []int64 // the tables and views of its query
	Columns    []struct{ Column, Text, Default string }
	Grants     []grant
}

// A check is a check constraint with a column that changes.
type check struct {
	Table      int64
	Name       string
	Columns    []int
	Definition string
	Expression string
	Valid      bool
	Comment    string
}

// A statistic is an extended statistics object with a column that changes.
type statistic struct {
	Table      int64
	Name       string // qualified and quoted
	Definition string
	Columns    []int
}

// A trigger is a trigger of the user on a table.
type trigger struct {
	Table    int64
	Name     string // without quotes
	Function int64
	Before   bool // BEFORE INSERT OR UPDATE … FOR EACH ROW
	// Old and New are the names of transition tables.
	Old, New string
}

// A function is a function of the user in a language that the server doesn't analyze. Its text
// can name tables, which are other relations in programs of the new version.
type function struct {
	OID     int64
	Name    string // with its argument types
	Plain   string // without schema
	Source  string
	Owner   string // quoted
	Owned   bool   // the role may change it
	Path    bool   // it has a search_path of its own
	Definer bool   // SECURITY DEFINER
	Rows    bool   // it returns rows of a table that changes

	text  string   // Source in lower case, without quotes of names
	words []string // of text
}

// A model describes the tables of a Spec, from the catalog.
type model struct {
	database    string
	role        string
	owner       string // the role that a step acts as, without quotes
	replicaRole bool   // the role can set session_replication_role
	keys        []*key
	waivers     []waiver
	literals    []string // of the Spec
	waived      []string // the elements of literals that name an object
	relations   []*relation
	foreignKeys []*foreignKey
	indexes     []*index
	changed     []*index // the indexes to build on new columns
	checks      []*check
	views       []*view
	statistics  []*statistic
	dependents  []dependent
	triggers    []*trigger
	functions   []*function
	path        []string // schemas of the tables
	trustedPath []string // schemas of path in which only trusted roles can create objects
	own         []string // schemas of the installed SQL
	sessionPath []string // quoted, when inspect began
	fingerprint []string // of allObjects
	bypassRLS   bool
	problems    []Problem
	notes       []Problem
}

// problem adds a problem, unless it is listed.
func (m *model) problem(object, reason, remedy string, args ...any) {
	if p := (Problem{object, fmt.Sprintf(reason, args...), remedy}); !slices.Contains(m.problems, p) {
		m.problems = append(m.problems, p)
	}
}

// refused reports whether there is a problem of an object.
func (m *model) refused(object string) bool {
	return slices.ContainsFunc(m.problems, func(p Problem) bool { return p.Object == object })
}

func (m *model) note(object, reason, remedy string, args ...any) {
	m.notes = append(m.notes, Problem{object, fmt.Sprintf(reason, args...), remedy})
}

func (m *model) relation(oid int64) *relation {
	for _, r := range m.relations {
		if r.OID == oid {
			return r
		}
	}
	return nil
}

func (m *model) column(table int64, num int) *column {
	if r := m.relation(table); r != nil {
		for _, c := range r.columns {
			if c.Num == num {
				return c
			}
		}
	}
	return nil
}

// has reports whether one of the columns changes.
func (m *model) has(table int64, nums []int) bool {
	return slices.ContainsFunc(nums, func(n int) bool { return m.column(table, n) != nil })
}
