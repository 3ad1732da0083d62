//! Remembers which producers' data a delivery may have retired, so that it is not told again before they looked anew.
//!
//! The commits of a delivery follow the proof of arrival, which follows the composing. What a producer staged in between
//! still holds what was told; the ring shows when the delivery was.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::logic::time::{Now, Timestamp};

use super::dedup::Ring;

/// How long after an emit's stamp in the ring its commits may still be under way.
const COMMIT_SLACK: Duration = Duration::from_secs(30);

/// Composed emits that are remembered until their delivery shows in the ring.
const MAX_COMPOSED: usize = 8;

/// An emit that was handed to the delivery.
#[derive(Debug)]
struct Composed {
    /// Its stable hash.
    hash: String,
    /// When it was first composed.
    at: Timestamp,
    /// The producers whose sections it tells.
    producers: Vec<&'static str>,
}

/// The memory.
#[derive(Debug, Default)]
pub struct Retired {
    /// The newest composed emits whose delivery has not been seen.
    composed: VecDeque<Composed>,
    /// For each producer, the time up to which its data may be from before a delivery.
    until: BTreeMap<&'static str, Timestamp>,
}

impl Retired {
    /// For each producer whose sections were delivered, the time up to which its data may be from before the commits:
    /// shortly after the stamp in the ring, or when that stamp was first seen here.
    pub fn until(&mut self, now: &Now, ring: &Ring) -> &BTreeMap<&'static str, Timestamp> {
        // A time from before the clock was set back would hold everything back until it comes again.
        for until in self.until.values_mut() {
            *until = now.at.min(*until);
        }
        let until = &mut self.until;
        self.composed.retain(|composed| {
            // Composed before the clock was set back: any stamp that is not from then too may be its delivery.
            let was_set_back = composed.at > now.at;
            let delivered =
                |at: &Timestamp| (was_set_back || at.secs() >= composed.at.secs()) && *at <= now.at.after(COMMIT_SLACK);
            let Some(at) = ring.last(&composed.hash).filter(delivered) else { return true };
            let up_to = now.at.min(at.after(COMMIT_SLACK));
            for producer in &composed.producers {
                // Kept apart from the emit, since a slow producer outlasts many emits.
                let newest = until.entry(*producer).or_insert(up_to);
                *newest = up_to.max(*newest);
            }
            false
        });
        &self.until
    }

    /// Remembers an emit that is handed to the delivery. One that is under way keeps its first time.
    pub fn remember(&mut self, hash: &str, at: Timestamp, producers: Vec<&'static str>) {
        if let Some(known) = self.composed.iter_mut().find(|composed| composed.hash == hash) {
            known.producers = producers;
            return;
        }
        self.composed.push_back(Composed { hash: hash.to_owned(), at, producers });
        if self.composed.len() > MAX_COMPOSED {
            self.composed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dedup::Delivered;
    use super::*;

    fn at(secs: i64) -> Now {
        Now::fixed(Timestamp::from_secs(secs))
    }

    fn ring(entries: &[(i64, &str)]) -> Ring {
        let delivered =
            |(secs, hash): &(i64, &str)| Delivered { at: Timestamp::from_secs(*secs), hash: (*hash).into() };
        entries.iter().map(delivered).fold(Ring::default(), |ring, delivered| Ring::parse(&ring.with(delivered, 2)))
    }

    #[test]
    fn only_a_delivery_retires_and_only_what_was_told() {
        let mut retired = Retired::default();
        retired.remember("a", Timestamp::from_secs(100), vec!["p"]);
        assert!(retired.until(&at(110), &ring(&[])).is_empty());
        assert!(retired.until(&at(110), &ring(&[(99, "a")])).is_empty());
        let until = retired.until(&at(110), &ring(&[(102, "a")]));
        assert_eq!(until.iter().collect::<Vec<_>>(), [(&"p", &Timestamp::from_secs(110))]);
        // Seen late, it is no later than the commits can have taken.
        retired.remember("b", Timestamp::from_secs(200), vec!["q"]);
        assert_eq!(retired.until(&at(900), &ring(&[(201, "b")]))["q"], Timestamp::from_secs(231));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_back() {
        let mut retired = Retired::default();
        retired.remember("a", Timestamp::from_secs(9000), vec!["p"]);
        retired.remember("under way", Timestamp::from_secs(9010), vec!["q"]);
        assert_eq!(retired.until(&at(9005), &ring(&[(9002, "a")]))["p"], Timestamp::from_secs(9005));
        // Set back by some 8000 s; what was under way arrives, what was told before may be told again.
        let after = ring(&[(9002, "a"), (1002, "under way")]);
        assert_eq!(retired.until(&at(1005), &after)["p"], Timestamp::from_secs(1005));
        let until = retired.until(&at(1010), &after);
        assert_eq!((until["p"], until["q"]), (Timestamp::from_secs(1005), Timestamp::from_secs(1005)));
        // The stamp of the future is not the delivery of what is composed now.
        retired.remember("a", Timestamp::from_secs(1011), vec!["p"]);
        assert_eq!(retired.until(&at(1020), &after)["p"], Timestamp::from_secs(1005));
    }

    #[test]
    fn what_a_slow_producer_told_stays_retired_however_many_emits_follow() {
        let mut retired = Retired::default();
        retired.remember("slow", Timestamp::from_secs(100), vec!["slow"]);
        retired.until(&at(101), &ring(&[(100, "slow")]));
        for n in 0..20 {
            let (secs, hash) = (110 + n, format!("h{n}"));
            retired.remember(&hash, Timestamp::from_secs(secs), vec!["p"]);
            assert_eq!(retired.until(&at(secs), &ring(&[(secs, &hash)]))["slow"], Timestamp::from_secs(101));
        }
    }
}
