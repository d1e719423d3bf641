//! A value that is made when it is first asked for; copies of it share what is made.
//!
//! In: a way to make the value, which cannot fail: where it may, it ends the work and gives an empty one. Out: the
//! value. Cost: a comparison each time that it is asked for.

use get_size2::{GetSize, GetSizeTracker};
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

type Make<T> = Box<dyn Fn() -> T + Send + Sync>;

/// See the module.
pub struct Lazy<T>(Arc<Made<T>>);

struct Made<T> {
    value: OnceLock<T>,
    make: Make<T>,
}

impl<T> Lazy<T> {
    /// A value that is made when it is needed.
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Lazy<T> {
        Lazy(Arc::new(Made { value: OnceLock::new(), make: Box::new(make) }))
    }

    /// The value if it was made.
    pub fn made(&self) -> Option<&T> {
        self.0.value.get()
    }
}

impl<T: Clone + Default + 'static> Lazy<T> {
    /// Change the value; copies keep theirs.
    pub fn change<C>(&mut self, change: impl FnOnce(&mut T) -> C) -> C {
        let shared = std::mem::take(self);
        let mut value = match Arc::try_unwrap(shared.0) {
            Ok(Made { value, make }) => value.into_inner().unwrap_or_else(make),
            Err(shared) => T::clone(&Lazy(shared)),
        };
        let changed = change(&mut value);
        *self = Lazy::from(value);
        changed
    }
}

impl<T: Default + 'static> From<T> for Lazy<T> {
    fn from(value: T) -> Lazy<T> {
        Lazy(Arc::new(Made { value: OnceLock::from(value), make: Box::new(T::default) }))
    }
}

impl<T: Default + 'static> Default for Lazy<T> {
    fn default() -> Lazy<T> {
        Lazy::from(T::default())
    }
}

impl<T> Clone for Lazy<T> {
    fn clone(&self) -> Lazy<T> {
        Lazy(Arc::clone(&self.0))
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.0.value.get_or_init(|| (self.0.make)())
    }
}

impl<T: Debug> Debug for Lazy<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.made().fmt(f)
    }
}

impl<T: GetSize> GetSize for Lazy<T> {
    fn get_heap_size_with_tracker<C: GetSizeTracker>(&self, tracker: C) -> (usize, C) {
        match self.made() {
            Some(value) => value.get_heap_size_with_tracker(tracker),
            None => (0, tracker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn lazy_value_is_made_once_for_all_copies_and_changed_for_one() {
        let made = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&made);
        let first = Lazy::new(move || vec![count.fetch_add(1, Ordering::Relaxed)]);
        let mut second = first.clone();
        assert_eq!((first.made(), made.load(Ordering::Relaxed)), (None, 0));
        second.change(|list| list.push(7));
        assert_eq!((first.as_slice(), second.as_slice(), made.load(Ordering::Relaxed)), (&[0][..], &[0, 7][..], 1));
        second.change(|list| list.push(8));
        assert_eq!(*second, [0, 7, 8]);
    }
}
