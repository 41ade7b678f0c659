package migrations

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A uuid7Order is a model whose keys are TypeIDs.
type uuid7Order struct{}

func (uuid7Order) IDPrefix() string { return "pre_fix" }

// Go and SQL functions return the same times, bounds and texts, with any session settings.
func TestUUID7(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn, odd := db.Conn(t), db.Conn(t)
		for _, sql := range parityOdd {
			exec(t, odd, sql)
		}
		r := rand.New(rand.NewPCG(1, 2))
		var ids []idtype.UUID
		for _, s := range []string{"00000000-0000-0000-0000-000000000000", "00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
			"ffffffff-ffff-ffff-ffff-ffffffffffff", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "919108f7-52d1-4320-9bac-f847db4148a8"} {
			ids = append(ids, idtype.MustParseUUID(s))
		}
		for range 2000 {
			id := idtype.UUID(uuid.New())
			if r.IntN(2) == 0 { // any time of version 7
				id[6] = id[6]&0xf | 0x70
			}
			ids = append(ids, id)
		}
		var stored, typeIDs []string
		for _, id := range ids {
			stored, typeIDs = append(stored, id.String()), append(typeIDs, idtype.UUIDOf[uuid7Order](id).String())
		}
		for name, c := range map[string]*pgx.Conn{"plain": conn, "odd": odd} {
			rows, _ := c.Query(t.Context(), `SELECT pg_catalog.trunc(extract(epoch FROM sortkey.uuid7_time(id::uuid)) OPERATOR(pg_catalog.*) 1000, 0)::int8,
				sortkey.typeid_text('pre_fix', id::uuid), sortkey.typeid_from_text(typeid)::text
				FROM ROWS FROM (unnest($1::text[]), unnest($2::text[])) WITH ORDINALITY AS u (id, typeid, n) ORDER BY n`, stored, typeIDs)
			i := 0
			var ms *int64
			var text, back string
			_, err := pgx.ForEachRow(rows, []any{&ms, &text, &back}, func() error {
				at, err := ids[i].Time()
				if err != nil && !errors.Is(err, idtype.ErrVersion) {
					return err
				}
				if (ms == nil) != (err != nil) || ms != nil && *ms != at.UnixMilli() {
					t.Errorf("%s: uuid7_time(%v) = %v ms, want %v, %v", name, ids[i], ms, at, err)
				}
				if text != typeIDs[i] || back != stored[i] {
					t.Errorf("%s: TypeID of %v: %v and %v, want %s", name, ids[i], text, back, typeIDs[i])
				}
				i++
				return nil
			})
			if err != nil || i != len(ids) {
				t.Fatalf("%s: %d rows of %d, %v", name, i, len(ids), err)
			}
		}

		var layout idtype.UUIDLayout
		for range 500 {
			at := time.UnixMicro(r.Int64N(1 << 58)).UTC() // to the year 11104
			want, err := layout.Floor(at)
			var got uuid.UUID
			queryErr := conn.QueryRow(t.Context(), "SELECT sortkey.uuid7_floor(timestamptz 'epoch' + $1 / 86400000000 * interval '1 day' + $1 % 86400000000 * interval '1 microsecond')", at.UnixMicro()).Scan(&got)
			if (queryErr == nil) != (err == nil) || idtype.UUID(got) != want {
				t.Fatalf("uuid7_floor(%v) = %v, %v, want %v, %v", at, got, queryErr, want, err)
			}
		}
		lo, hi, _ := layout.Range(time.Time{}, time.Time{})
		var first, last uuid.UUID
		must(t, conn.QueryRow(t.Context(), "SELECT sortkey.uuid7_floor('-infinity'), sortkey.uuid7_floor('infinity')").Scan(&first, &last))
		if idtype.UUID(first) != lo || idtype.UUID(last) != hi {
			t.Errorf("open bounds %v and %v, want %v and %v", first, last, lo, hi)
		}
		for sql, want := range map[string]string{
			"SELECT sortkey.uuid7_floor('1969-12-31 23:59:59.999Z')":                              "is out of range for UUID (1970-01-01T00:00:00.000Z to 10889-08-02T05:31:50.655Z)",
			"SELECT sortkey.typeid_text('v2', gen_random_uuid())":                                 "'v2' is not the prefix of a TypeID",
			"SELECT sortkey.typeid_text('a_', gen_random_uuid())":                                 "'a_' is not the prefix of a TypeID",
			"SELECT sortkey.typeid_text(repeat('a', 64), gen_random_uuid())":                      "is not the prefix of a TypeID",
			"SELECT sortkey.typeid_from_text('prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz')":                "cannot parse 'prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz' as TypeID",
			"SELECT sortkey.typeid_from_text('PREFIX_00000000000000000000000000')":                "cannot parse",
			"SELECT sortkey.typeid_from_text('_00000000000000000000000000')":                      "cannot parse",
			"SELECT sortkey.typeid_from_text('prefix__00000000000000000000000000')":               "cannot parse",
			"SELECT sortkey.typeid_from_text('0000000000000000000000000l')":                       "cannot parse",
			"SELECT sortkey.typeid_from_text(E'00000000000000000000000000\\n')":                   "cannot parse",
			"SELECT '919108f7-52d1-4320-9bac-f847db4148a8'::sortkey.uuid7":                        "uuid7_has_version_7",
			"SELECT '017f22e2-79b0-7cc3-18c4-dc0c0c07398f'::sortkey.uuid7":                        "uuid7_has_version_7",
			"SELECT '00000000-0000-0000-0000-000000000000'::sortkey.uuid7":                        "uuid7_has_version_7",
			"SELECT 1 / ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'::sortkey.uuid7 IS NULL)::integer": "division by zero",
		} {
			if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", sql, err, want)
			}
		}
	})
}

// Defaults create UUIDs of version 7 that increase from microsecond to microsecond, with
// the time of the server's clock.
func TestNextUUID7(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE o (id sortkey.uuid7 PRIMARY KEY DEFAULT sortkey.next_uuid7(), before timestamptz DEFAULT clock_timestamp())")
		db.Exec(t, "INSERT INTO o SELECT FROM generate_series(1, 20000)")
		pool := db.Pool(t)
		var early, late time.Duration
		must(t, pool.QueryRow(t.Context(), "SELECT min(before - sortkey.uuid7_time(id)), percentile_disc(0.5) WITHIN GROUP (ORDER BY before - sortkey.uuid7_time(id)) FROM o").Scan(&early, &late))
		if early < -time.Millisecond || late > 10*time.Millisecond {
			t.Errorf("the times are %v, or at the median %v, behind the clock", early, late)
		}
		var ids []uuid.UUID
		for range 100 {
			var id uuid.UUID
			must(t, pool.QueryRow(t.Context(), "INSERT INTO o DEFAULT VALUES RETURNING id").Scan(&id))
			ids = append(ids, id)
		}
		if !slices.IsSortedFunc(ids, func(a, b uuid.UUID) int { return idtype.UUID(a).Compare(idtype.UUID(b)) }) {
			t.Error("statements one after the other got IDs that don't increase")
		}
		// A hostile search_path changes nothing.
		db.Exec(t, `CREATE SCHEMA evil; CREATE FUNCTION evil.gen_random_uuid() RETURNS uuid LANGUAGE sql RETURN '00000000-0000-7000-8000-000000000000'::uuid;
			CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN 'epoch'::timestamptz`)
		conn := db.Conn(t)
		exec(t, conn, "SET search_path = evil, pg_catalog")
		var id uuid.UUID
		must(t, conn.QueryRow(t.Context(), "INSERT INTO public.o DEFAULT VALUES RETURNING id").Scan(&id))
		if at, err := idtype.UUID(id).Time(); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("with a hostile search_path: %v of %v, %v", id, at, err)
		}
	})
}
