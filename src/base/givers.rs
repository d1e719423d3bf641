//! Who holds memory that can give way.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What holds memory that can give way while the work goes on.
pub trait GivesWay: fmt::Debug + Send + Sync {
    /// Give this many bytes back, or as many as there are; returns how many.
    fn give_way(&self, bytes: u64) -> u64;
}

/// Those who can give memory back, while they exist.
#[derive(Clone, Debug, Default)]
pub struct Givers(Arc<Mutex<Vec<Weak<dyn GivesWay>>>>);

impl Givers {
    /// Ask this one too.
    pub fn add<G: GivesWay + 'static>(&self, giver: &Arc<G>) {
        let giver: Weak<G> = Arc::downgrade(giver);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|giver| giver.strong_count() > 0);
        all.push(giver);
    }

    /// Ask for this many bytes, the oldest first.
    pub fn ask(&self, bytes: u64) {
        let all: Vec<_> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
        all.iter().fold(bytes, |missing, giver| match missing {
            0 => 0,
            _ => missing.saturating_sub(giver.give_way(missing)),
        });
    }
}
