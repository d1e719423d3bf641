//! Properties of positions, and sizes of fields, that the metadata alone decides.

use super::schema::{Bits, Count, Field, Kind};

/// The known properties of a position: `residue` modulo `modulus`, a power of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    modulus: u64,
    residue: u64,
}

impl Default for Phase {
    fn default() -> Self {
        Phase::UNKNOWN
    }
}

impl Phase {
    /// Nothing is known.
    pub(super) const UNKNOWN: Phase = Phase { modulus: 1, residue: 0 };
    /// The beginning of a packet.
    pub(super) const PACKET: Phase = Phase { modulus: 1 << 62, residue: 0 };
    /// A byte boundary.
    pub(super) const BYTE: Phase = Phase::aligned(8);

    /// A multiple of `align` bits.
    pub(super) const fn aligned(align: u64) -> Phase {
        Phase { modulus: align, residue: 0 }
    }

    /// The position `bits` further on.
    pub(super) fn advance(self, bits: u64) -> Phase {
        Phase { residue: self.residue.wrapping_add(bits) & (self.modulus - 1), ..self }
    }

    /// Bits to the next multiple of `align`; `None` where that depends on the data.
    pub(super) fn padding(self, align: u64) -> Option<u64> {
        (align <= self.modulus).then(|| self.residue.wrapping_neg() & (align - 1))
    }

    /// True for positions on byte boundaries.
    pub(super) fn is_byte(self) -> bool {
        self.modulus >= 8 && self.residue.is_multiple_of(8)
    }

    /// The properties that both positions have.
    pub(super) fn join(self, other: Phase) -> Phase {
        let mut modulus = self.modulus.min(other.modulus);
        while (self.residue ^ other.residue) & (modulus - 1) != 0 {
            modulus /= 2;
        }
        Phase { modulus, residue: self.residue & (modulus - 1) }
    }
}

/// The integers of an array that begins at `phase`, if they are contiguous on whole bytes, and the bytes of each.
pub(super) fn contiguous_integers(element: &Field, phase: Phase) -> Option<(&Bits, u8)> {
    let Kind::Bits(bits) = &element.kind else { return None };
    let size = u64::from(bits.size);
    let is_plain = bits.saves.is_empty() && bits.clock.is_none() && !bits.reversed;
    let on_bytes = phase.is_byte() || element.align.is_multiple_of(8);
    let fits = matches!(size, 8 | 16 | 32 | 64) && size % element.align == 0;
    (is_plain && on_bytes && fits).then_some((bits, bits.size / 8))
}

/// The size of a field that begins aligned, where the metadata alone decides it and nothing in it is needed later.
pub(super) fn fixed_size(field: &Field) -> Option<u64> {
    match &field.kind {
        Kind::Bits(bits) => (bits.saves.is_empty() && bits.clock.is_none()).then_some(u64::from(bits.size)),
        Kind::Real { size, .. } => Some(u64::from(*size)),
        Kind::SizedText(_, Count::Fixed(n)) | Kind::Blob { count: Count::Fixed(n), .. } => n.checked_mul(8),
        Kind::Struct(members) => members.iter().try_fold(0u64, |at, member| {
            let start = at.checked_next_multiple_of(member.field.align)?;
            start.checked_add(fixed_size(&member.field)?)
        }),
        Kind::Array { count: Count::Fixed(n), element, .. } => element_size(element)?.checked_mul(*n),
        _ => None,
    }
}

/// The fixed size of an element that leaves the next one aligned.
pub(super) fn element_size(element: &Field) -> Option<u64> {
    fixed_size(element).filter(|size| size % element.align == 0)
}
