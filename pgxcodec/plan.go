package pgxcodec

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// encodePlan returns the plan for a value whose type is V or built from V, and nil for
// other types. W is V's wire for the format.
func encodePlan[V sqltypes.ID, W wire[V]](value any) pgtype.EncodePlan {
	switch value.(type) {
	case V:
		return encodeValue[V, W]{}
	case *V:
		return encodePointer[V, W]{}
	case **V:
		return encodePointerPointer[V, W]{}
	case sql.Null[V]:
		return encodeNull[V, W]{}
	case *sql.Null[V]:
		return encodeNullPointer[V, W]{}
	case sqltypes.Optional[V]:
		return encodeOptional[V, W]{}
	case *sqltypes.Optional[V]:
		return encodeOptionalPointer[V, W]{}
	}
	return nil
}

// scanPlan returns the plan for a target that can hold a V, and nil for other targets.
// pgx itself dereferences other pointers to pointers and then asks for a plan again.
func scanPlan[V sqltypes.ID, W wire[V]](target any) pgtype.ScanPlan {
	switch target.(type) {
	case *V:
		return scanValue[V, W]{}
	case **V:
		return scanPointer[V, W]{}
	case *sql.Null[V]:
		return scanNull[V, W]{}
	case *sqltypes.Optional[V]:
		return scanOptional[V, W]{}
	}
	return nil
}

// put appends *v, or returns nil, which means NULL, if v is nil.
func put[V any, W wire[V]](buf []byte, v *V) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var w W
	return w.put(buf, *v)
}

type encodeValue[V any, W wire[V]] struct{}

func (encodeValue[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	var w W
	return w.put(buf, value.(V))
}

type encodePointer[V any, W wire[V]] struct{}

func (encodePointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	return put[V, W](buf, value.(*V))
}

type encodePointerPointer[V any, W wire[V]] struct{}

func (encodePointerPointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	p := value.(**V)
	if p == nil {
		return nil, nil
	}
	return put[V, W](buf, *p)
}

type encodeNull[V any, W wire[V]] struct{}

func (encodeNull[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	return putNull[V, W](buf, value.(sql.Null[V]))
}

type encodeNullPointer[V any, W wire[V]] struct{}

func (encodeNullPointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	p := value.(*sql.Null[V])
	if p == nil {
		return nil, nil
	}
	return putNull[V, W](buf, *p)
}

func putNull[V any, W wire[V]](buf []byte, v sql.Null[V]) ([]byte, error) {
	if !v.Valid {
		return nil, nil
	}
	var w W
	return w.put(buf, v.V)
}

type encodeOptional[V sqltypes.ID, W wire[V]] struct{}

func (encodeOptional[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	return putOptional[V, W](buf, value.(sqltypes.Optional[V]))
}

type encodeOptionalPointer[V sqltypes.ID, W wire[V]] struct{}

func (encodeOptionalPointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	p := value.(*sqltypes.Optional[V])
	if p == nil {
		return nil, nil
	}
	return putOptional[V, W](buf, *p)
}

func putOptional[V sqltypes.ID, W wire[V]](buf []byte, v sqltypes.Optional[V]) ([]byte, error) {
	if v.IsZero() {
		return nil, nil
	}
	var w W
	return w.put(buf, v.ID)
}

type scanValue[V any, W wire[V]] struct{}

func (scanValue[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(*V)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		return nullError[V]()
	}
	var w W
	return w.get(src, dst)
}

// nullError returns the error for a NULL that is scanned into a V.
func nullError[V any]() error { return fmt.Errorf("pgxcodec: %w", scanNullError[V]()) }

// scanNullError returns nullError without the package's name, for elementError.
func scanNullError[V any]() error {
	return fmt.Errorf("scan NULL into %[1]T; scan a nullable column into *%[1]T, sql.Null[%[1]T] or sqltypes.Optional[%[1]T]: %[2]w", *new(V), idtype.ErrNull)
}

type scanPointer[V any, W wire[V]] struct{}

func (scanPointer[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(**V)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	}
	var w W
	v := new(V)
	if err := w.get(src, v); err != nil {
		return err
	}
	*dst = v
	return nil
}

type scanNull[V any, W wire[V]] struct{}

func (scanNull[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(*sql.Null[V])
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = sql.Null[V]{}
		return nil
	}
	var w W
	if err := w.get(src, &dst.V); err != nil {
		return err
	}
	dst.Valid = true
	return nil
}

type scanOptional[V sqltypes.ID, W wire[V]] struct{}

func (scanOptional[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(*sqltypes.Optional[V])
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = sqltypes.Optional[V]{}
		return nil
	}
	var w W
	return w.get(src, &dst.ID)
}
