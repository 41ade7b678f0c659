package dbhealth

import (
	"context"
	"fmt"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

var poolLayout = Rule{
	ID: "pool-layout", Area: "claims",
	Means:  "programs that claim numbers of a pool have another layout than the functions of the database",
	Remedy: "use the same layout in all programs",
	needs:  []string{mayList},
	check: func(ctx context.Context, e *Examination) error {
		pools, err := e.Pools(ctx)
		want := map[string]string{"snowflake": nodelease.ForSnowflake(e.Config.Snowflake).Layout}
		if e.Config.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
			want["snowflake_si"] = nodelease.ForSnowflakeSI(e.Config.SnowflakeSI).Layout
		}
		for _, p := range pools {
			if p.Layout == nil {
				continue
			}
			format, _, _ := strings.Cut(*p.Layout, ":")
			if layout, ok := want[format]; ok && *p.Layout != layout {
				e.add(Warning, p.Pool, p.subject(), fmt.Sprintf("has layout %q, but the functions of this database have %q", *p.Layout, layout),
					"use the same layout in all programs, or the functions read wrong times from their IDs")
			}
		}
		return err
	},
}
