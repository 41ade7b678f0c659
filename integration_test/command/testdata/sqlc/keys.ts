// The keys of the tables, as texts: the ones in JSON. The value of prefix is the
// text before the underscore, if the model in Go declares a prefix.

function check(type: string, text: string, prefix: string, form: RegExp, max?: bigint): string {
  const id = prefix === "" ? text : text.startsWith(prefix + "_") ? text.slice(prefix.length + 1) : "";
  if (!form.test(id) || (max !== undefined && BigInt(id) > max)) {
    throw new TypeError(`parse ${JSON.stringify(text)} as ${type}: malformed${prefix === "" ? "" : "; want the prefix " + prefix}`);
  }
  return text;
}

// AForgedFine31mID is the key of the table "public.*/ a\nforged: fine\x1b[31m\u202e`;".
export type AForgedFine31mID = string & { readonly __key: "AForgedFine31mID" };

// parseAForgedFine31mID returns text, or throws a TypeError.
export function parseAForgedFine31mID(text: string, prefix = ""): AForgedFine31mID {
  return check("AForgedFine31mID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as AForgedFine31mID;
}

// Table2faCodeID is the key of the table public.2fa_codes.
export type Table2faCodeID = string & { readonly __key: "Table2faCodeID" };

// parseTable2faCodeID returns text, or throws a TypeError.
export function parseTable2faCodeID(text: string, prefix = ""): Table2faCodeID {
  return check("Table2faCodeID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as Table2faCodeID;
}

// OrderItemID is the key of the table public.Order Items.
export type OrderItemID = string & { readonly __key: "OrderItemID" };

// parseOrderItemID returns text, or throws a TypeError.
export function parseOrderItemID(text: string, prefix = ""): OrderItemID {
  return check("OrderItemID", text, prefix, prefix === "" ? /^[\w-]{2}([\w-]{2}|(?!A)[\w-]{3,7}|[\w-]{8})$/ : /^[\w-]{10}$/) as OrderItemID;
}

// APIKeyID is the key of the table public.api_keys.
export type APIKeyID = string & { readonly __key: "APIKeyID" };

// parseAPIKeyID returns text, or throws a TypeError.
export function parseAPIKeyID(text: string, prefix = ""): APIKeyID {
  return check("APIKeyID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as APIKeyID;
}

// BodyID is the key of the table public.bodies.
export type BodyID = string & { readonly __key: "BodyID" };

// parseBodyID returns text, or throws a TypeError.
export function parseBodyID(text: string, prefix = ""): BodyID {
  return check("BodyID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as BodyID;
}

// CustomerID is the key of the table public.customers.
export type CustomerID = string & { readonly __key: "CustomerID" };

// parseCustomerID returns text, or throws a TypeError.
export function parseCustomerID(text: string, prefix = ""): CustomerID {
  return check("CustomerID", text, prefix, /^[2-9a-x]{16}$/) as CustomerID;
}

// EventNoteID is the key of the table public.event_notes.
export type EventNoteID = string & { readonly __key: "EventNoteID" };

// parseEventNoteID returns text, or throws a TypeError.
export function parseEventNoteID(text: string | number, prefix = ""): EventNoteID {
  return check("EventNoteID", String(text), prefix, /^(0|[1-9][0-9]{0,15})$/, 9007199254740991n) as EventNoteID;
}

// EventID is the key of the table public.events.
export type EventID = string & { readonly __key: "EventID" };

// parseEventID returns text, or throws a TypeError.
export function parseEventID(text: string, prefix = ""): EventID {
  return check("EventID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as EventID;
}

// LegacyID is the key of the table public.legacy.
export type LegacyID = string & { readonly __key: "LegacyID" };

// parseLegacyID returns text, or throws a TypeError.
export function parseLegacyID(text: string, prefix = ""): LegacyID {
  return check("LegacyID", text, prefix, /^(0|[1-9][0-9]{0,18})$/, 9223372036854775807n) as LegacyID;
}

// PublicOrderID is the key of the table public.orders.
export type PublicOrderID = string & { readonly __key: "PublicOrderID" };

// parsePublicOrderID returns text, or throws a TypeError.
export function parsePublicOrderID(text: string, prefix = ""): PublicOrderID {
  return check("PublicOrderID", text, prefix, /^(0|[1-9][0-9]{0,18})$/, 9223372036854775807n) as PublicOrderID;
}

// OurID is the key of the table public.ours.
export type OurID = string & { readonly __key: "OurID" };

// parseOurID returns text, or throws a TypeError.
export function parseOurID(text: string, prefix = ""): OurID {
  return check("OurID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as OurID;
}

// PartNoteID is the key of the table public.part_notes.
export type PartNoteID = string & { readonly __key: "PartNoteID" };

// parsePartNoteID returns text, or throws a TypeError.
export function parsePartNoteID(text: string, prefix = ""): PartNoteID {
  return check("PartNoteID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as PartNoteID;
}

// PartID is the key of the table public.parts.
export type PartID = string & { readonly __key: "PartID" };

// parsePartID returns text, or throws a TypeError.
export function parsePartID(text: string, prefix = ""): PartID {
  return check("PartID", text, prefix, /^(0|[1-9][0-9]{0,18})$/, 9223372036854775807n) as PartID;
}

// ReadingID is the key of the table public.readings.
export type ReadingID = string & { readonly __key: "ReadingID" };

// parseReadingID returns text, or throws a TypeError.
export function parseReadingID(text: string, prefix = ""): ReadingID {
  return check("ReadingID", text, prefix, /^(0|[1-9][0-9]{0,18})$/, 9223372036854775807n) as ReadingID;
}

// ReviewID is the key of the table public.reviews.
export type ReviewID = string & { readonly __key: "ReviewID" };

// parseReviewID returns text, or throws a TypeError.
export function parseReviewID(text: string, prefix = ""): ReviewID {
  return check("ReviewID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as ReviewID;
}

// TailID is the key of the table public.tails.
export type TailID = string & { readonly __key: "TailID" };

// parseTailID returns text, or throws a TypeError.
export function parseTailID(text: string, prefix = ""): TailID {
  return check("TailID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as TailID;
}

// TypeIDID is the key of the table public.type_ids.
export type TypeIDID = string & { readonly __key: "TypeIDID" };

// parseTypeIDID returns text, or throws a TypeError.
export function parseTypeIDID(text: string, prefix = ""): TypeIDID {
  return check("TypeIDID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as TypeIDID;
}

// Type2ID is the key of the table public.types.
export type Type2ID = string & { readonly __key: "Type2ID" };

// parseType2ID returns text, or throws a TypeError.
export function parseType2ID(text: string, prefix = ""): Type2ID {
  return check("Type2ID", text, prefix, prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/) as Type2ID;
}

// SalesOrderID is the key of the table sales.orders.
export type SalesOrderID = string & { readonly __key: "SalesOrderID" };

// parseSalesOrderID returns text, or throws a TypeError.
export function parseSalesOrderID(text: string, prefix = ""): SalesOrderID {
  return check("SalesOrderID", text, prefix, /^[0-9a-f]{12}0[0-3][0-9a-f]{2}$/) as SalesOrderID;
}
