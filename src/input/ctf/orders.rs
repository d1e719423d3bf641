//! The byte orders of a schema's numbers: within one byte the order must not change, which a decoder must check only
//! where numbers of both orders may share a byte.

use super::schema::{Field, Kind, Schema};
use crate::base::cursor::ByteOrder;

/// The byte orders of numbers that may begin or end inside a byte. Within one byte the order must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrders {
    /// One order, or none.
    Uniform,
    /// Both: the order must be checked.
    Mixed,
}

impl Schema {
    /// The byte orders of numbers that may begin or end inside a byte.
    pub(super) fn byte_orders(&self) -> ByteOrders {
        let streams = self.streams.iter().flat_map(|s| [&s.packet_context, &s.event_header, &s.common_context]);
        let events = self.streams.iter().flat_map(|s| &s.events).flat_map(|e| [&e.specific_context, &e.payload]);
        let mut orders = [false; 2];
        for field in [&self.packet_header].into_iter().chain(streams).chain(events).flatten() {
            orders_inside(field, &mut orders);
        }
        if orders == [true; 2] { ByteOrders::Mixed } else { ByteOrders::Uniform }
    }
}

/// Marks the byte orders (little, big) of numbers that may begin or end inside a byte.
fn orders_inside(field: &Field, orders: &mut [bool; 2]) {
    let mut number = |size: u64, byte_order: ByteOrder| {
        if !field.align.is_multiple_of(8) || !size.is_multiple_of(8) {
            orders[byte_order as usize] = true;
        }
    };
    match &field.kind {
        Kind::Bits(bits) => number(bits.size.into(), bits.byte_order),
        Kind::Real { size, byte_order, .. } => number((*size).into(), *byte_order),
        Kind::Struct(members) => members.iter().for_each(|m| orders_inside(&m.field, orders)),
        Kind::Variant { options, .. } => options.iter().for_each(|o| orders_inside(&o.field, orders)),
        Kind::Array { element: inner, .. } | Kind::Optional { field: inner, .. } => orders_inside(inner, orders),
        _ => {}
    }
}
