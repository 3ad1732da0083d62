//! Remembers which producers' data a delivery may have retired, so that it is not told again before they looked anew.
//!
//! The commits of a delivery follow the proof of arrival, which follows the composing. What a producer staged in between
//! still holds what was told; the ring shows when the delivery was.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::logic::time::{Now, Timestamp};

use super::dedup::{CLOCK_SLACK, Ring};

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
    /// When its delivery was first seen in the ring.
    seen: Option<Timestamp>,
}

/// The memory.
#[derive(Debug, Default)]
pub struct Retired {
    /// The newest composed emits.
    composed: VecDeque<Composed>,
    /// For each producer, the time up to which its data may be from before a delivery.
    until: BTreeMap<&'static str, Timestamp>,
}

impl Retired {
    /// For each producer whose sections were delivered, the time up to which its data may be from before the commits:
    /// shortly after the stamp in the ring, or when that stamp was first seen here.
    ///
    /// A time that lies ahead is from before the clock was set back, and nothing can be compared with it.
    pub fn until(&mut self, now: &Now, ring: &Ring) -> &BTreeMap<&'static str, Timestamp> {
        let ahead = now.at.after(CLOCK_SLACK);
        self.composed.retain(|composed| composed.at <= ahead && composed.seen.is_none_or(|seen| seen <= ahead));
        self.until.retain(|_, until| *until <= ahead);
        for composed in &mut self.composed {
            let Some(at) = ring.last(&composed.hash).filter(|at| at.secs() >= composed.at.secs()) else { continue };
            let seen = *composed.seen.get_or_insert(now.at);
            let until = seen.min(at.after(COMMIT_SLACK));
            for producer in &composed.producers {
                // Kept apart from the emit, since a slow producer outlasts many emits.
                let newest = self.until.entry(*producer).or_insert(until);
                *newest = until.max(*newest);
            }
        }
        &self.until
    }

    /// Remembers an emit that is handed to the delivery. One that is under way keeps its first time.
    pub fn remember(&mut self, hash: &str, at: Timestamp, producers: Vec<&'static str>) {
        if let Some(known) = self.composed.iter_mut().find(|composed| composed.hash == hash) {
            if known.seen.take().is_some() {
                known.at = at;
            }
            known.producers = producers;
            return;
        }
        self.composed.push_back(Composed { hash: hash.to_owned(), at, producers, seen: None });
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
    fn what_was_before_the_clock_was_set_back_retires_nothing() {
        let mut retired = Retired::default();
        retired.remember("a", Timestamp::from_secs(5000), vec!["p"]);
        assert_eq!(retired.until(&at(5001), &ring(&[(5000, "a")])).len(), 1);
        assert!(retired.until(&at(1000), &ring(&[(5000, "a")])).is_empty());
        retired.remember("b", Timestamp::from_secs(1000), vec!["p"]);
        assert_eq!(retired.until(&at(1002), &ring(&[(5000, "a"), (1001, "b")]))["p"], Timestamp::from_secs(1002));
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
