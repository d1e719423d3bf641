//! The roles of a structure's fields: packet size, event class id, CPU and others.

use super::schema::{Field, Kind, Role};

/// The roles that the fields of a structure have, as a set of bits.
pub(super) fn roles_of(field: Option<&Field>) -> u32 {
    let Some(field) = field else { return 0 };
    match &field.kind {
        Kind::Bits(bits) => bits.saves.iter().filter(|s| **s < Role::COUNT).fold(0, |roles, s| roles | 1 << s),
        Kind::Variable { saves, .. } => saves.iter().filter(|s| **s < Role::COUNT).fold(0, |roles, s| roles | 1 << s),
        Kind::Struct(members) => members.iter().fold(0, |roles, m| roles | roles_of(Some(&m.field))),
        Kind::Variant { options, .. } => options.iter().fold(0, |roles, o| roles | roles_of(Some(&o.field))),
        Kind::Optional { field, .. } => roles_of(Some(field)),
        _ => 0,
    }
}

/// True where a structure has a field with a role.
pub(super) fn has_role(field: Option<&Field>, role: Role) -> bool {
    roles_of(field) >> role.slot() & 1 == 1
}

/// Bits of the number with a role, 64 where it is of variable length or missing.
pub(super) fn size_of_role(field: Option<&Field>, role: Role) -> u8 {
    let size = |field: &Field| match &field.kind {
        Kind::Bits(bits) if bits.saves.contains(&role.slot()) => Some(bits.size),
        _ => None,
    };
    match field.map(|f| &f.kind) {
        Some(Kind::Struct(members)) => members.iter().find_map(|m| size(&m.field)).unwrap_or(64),
        _ => 64,
    }
}
