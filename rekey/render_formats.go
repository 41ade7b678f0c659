package rekey

import (
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// A format is a Format in an installation. Its SQL has placeholders for the arguments.
type format struct {
	sqlType string
	pool    string // of node numbers; empty for UID60 and UUID7
	nodes   int    // size of the pool
	next    string // SQL for an ID of now
	creates string // the function of next, with its argument types
	at      string // SQL for an ID of a time
	time    string // name of the function that returns the time of an ID
	epochMS int64  // first instant in Unix milliseconds
	unitMS  int64  // time unit of an ID in milliseconds
	perUnit int64  // sequence numbers per unit
	random  bool   // 62 random bits keep IDs of one time different
}

// formats returns the formats of an installation.
func formats(c migrations.Config) map[Format]format {
	schema := c.Schema
	snowflake := c.Snowflake
	if snowflake == (idtype.SnowflakeLayout{}) {
		snowflake = idtype.DefaultSnowflakeLayout()
	}
	all := map[Format]format{
		Snowflake: {
			sqlType: "bigint", pool: "snowflake", nodes: 1 << (snowflake.DatacenterBits + snowflake.WorkerBits),
			next: schema + ".next_snowflake({node})", creates: schema + ".next_snowflake(integer)", at: schema + ".snowflake_at({time}, {n}, {node})", time: schema + ".snowflake_time",
			epochMS: snowflake.Epoch.UnixMilli(), unitMS: 1, perUnit: 1 << snowflake.SequenceBits,
		},
		UID60: {
			sqlType: "bigint",
			next:    schema + ".next_uid60()", creates: schema + ".next_uid60()", at: schema + ".uid60_at({time}, {n})", time: schema + ".uid60_time",
			epochMS: idtype.UID60Layout{}.Time(0).UnixMilli(), unitMS: 1, perUnit: 1 << 9,
		},
		Sno: {
			sqlType: "uuid", pool: "sno", nodes: 1 << 16,
			next: schema + ".next_sno({node}, {meta})", creates: schema + ".next_sno(integer, integer)", at: schema + ".sno_at({time}, {n}, {node}, {meta})", time: schema + ".sno_time",
			epochMS: idtype.SnoLayout{}.Time(idtype.Sno{}).UnixMilli(), unitMS: 4, perUnit: 1 << 16,
		},
		UUID7: { // the sequence number is in the 12 bits of the fraction of a millisecond
			sqlType: "uuid", random: true,
			next: schema + ".next_uuid7()", creates: schema + ".next_uuid7()", time: schema + ".uuid7_time",
			at:     "(left(" + schema + ".uuid7_floor({time})::text, 15) || lpad(to_hex({n}), 3, '0') || right(gen_random_uuid()::text, 18))::uuid",
			unitMS: 1, perUnit: 1 << 12,
		},
	}
	return all
}

// nextID returns SQL for the new key of a row that programs insert by the old key.
func (k *key) nextID(oldKey string) string {
	if k.InPlace {
		return oldKey + "::bigint"
	}
	return k.with(k.format.next, k.Node, "", "")
}

// idAt returns SQL for the ID of an existing row.
func (k *key) idAt(time, n string) string { return k.with(k.format.at, k.BackfillNode, time, n) }

func (k *key) with(sql string, node int, time, n string) string {
	return strings.NewReplacer("{node}", strconv.Itoa(node), "{meta}", strconv.Itoa(int(k.Meta)), "{time}", time, "{n}", n).Replace(sql)
}
