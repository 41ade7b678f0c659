package dbhealth

import (
	"cmp"
	"context"
	"fmt"
)

var nodeSetting = Rule{
	ID: "node-setting", Area: "setting",
	Means:  "the setting `sortkey.node` of the session is not the one of the database",
	Remedy: "`ALTER DATABASE … SET sortkey.node = N`, and reconnect",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		name := e.Config.Schema + ".node"
		s, err := e.setting(ctx)
		switch {
		case err != nil:
			return err
		case s.session == "" && s.database == "":
			e.add(OK, "", name, "not set", "")
		case s.database == "":
			e.add(Warning, "", name, s.session+" in this session only: its connection string or its role sets it", s.alter+s.session+", and reconnect")
		case s.session != s.database:
			e.add(Warning, "", name, fmt.Sprintf("%s for the database, but %s in this session: its connection string or its role sets it", s.database, cmp.Or(s.session, "not set")), s.alter+"N, and reconnect, or drop the other setting")
		default:
			e.add(OK, "", name, s.session+" for the database", "")
		}
		return nil
	},
}

// A setting is the node number of defaults, in the session and for the database, and the
// beginning of the statement that sets it.
type setting struct{ session, database, alter string }

func (e *Examination) setting(ctx context.Context) (setting, error) {
	return recall(e, "setting", func() (s setting, err error) {
		err = e.row(ctx, []any{&s.session, &s.alter, &s.database}, `
			SELECT coalesce(current_setting($1::text, true), ''), format('run ALTER DATABASE %I SET %s = ', current_database(), $1::text), coalesce((
				SELECT substr(c, length($1::text) + 2) FROM pg_db_role_setting s JOIN pg_database b ON b.oid = s.setdatabase, unnest(s.setconfig) c
				WHERE b.datname = current_database() AND s.setrole = 0 AND starts_with(c, $1::text || '=')), '')`, e.Config.Schema+".node")
		return s, err
	})
}
