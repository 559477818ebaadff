//! The open connections, with the limits on their number, their patience and the bytes that wait for their clients.
//!
//! Invariants:
//! - A connection that a client only holds, without sending a request or reading an answer, ends after a bounded time, and makes room
//!   for others before that.
//! - The last places are kept by health checks and requests with a valid key alone.
//! - A connection that answers a request to a client that reads is never closed to make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::ConnectionLimits;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pause between two looks at the deadlines of all connections.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
/// In a reserved place, the head of the first request must arrive within this time.
const RESERVED_HEAD: Duration = Duration::from_secs(5);
/// When all places are taken, a connection that has sent nothing for this long makes room.
const SILENT: Duration = Duration::from_secs(1);
/// A client that reads less than this many bytes in a second, over the whole time for which bytes wait for it, does not read.
const LEAST_BYTES_PER_SECOND: u64 = 1_024;
/// A client for which bytes have waited this long makes room when other answers need it.
const STALLED: Duration = Duration::from_secs(1);
/// The time for which an answer waits for room among the answers that are not read yet.
const ROOM_WITHIN: Duration = Duration::from_secs(2);

/// All open connections.
pub struct Connections {
    limits: ConnectionLimits,
    table: Mutex<Table>,
    /// Wakes the acceptor and the answers that wait for room.
    freed: Notify,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    open: HashMap<u64, Arc<Connection>>,
    /// The bytes of answers that wait for their clients.
    buffered: usize,
    /// The bytes of answers that wait for room among those.
    waiting: usize,
}

/// One open connection.
pub struct Connection {
    id: u64,
    address: IpAddr,
    /// The connection is in one of the reserved places, and keeps it only with a request that has a right to it.
    reserved: bool,
    limits: ConnectionLimits,
    state: Mutex<State>,
    /// Cancelled to close the connection after the request that it may be answering.
    pub close: CancellationToken,
    /// Cancelled to cut the connection.
    pub cut: CancellationToken,
}

struct State {
    phase: Phase,
    /// A request with a valid identity came over this connection.
    trusted: bool,
    /// Since when the client has not taken all that was written, and how much it took since then.
    stall: Option<Stall>,
    /// The bytes of an answer that wait for the client.
    buffered: usize,
    /// The part of them that hyper has taken, and that no longer wait when everything is written.
    taken: usize,
}

/// The event that a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// For the rest of a request's head, or for the first byte of the first one.
    Head(Instant),
    /// For the answer to a request.
    Answer,
    /// For the next request.
    Idle(Instant),
}

#[derive(Debug, Clone, Copy)]
struct Stall {
    since: Instant,
    taken: u64,
}

/// An answer that waits for room. Dropping it ends the wait.
struct WaitingAnswer<'a> {
    connections: &'a Connections,
    bytes: usize,
}

impl Drop for WaitingAnswer<'_> {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.waiting = table.waiting.saturating_sub(self.bytes);
    }
}

/// Whether a new connection gets a place.
pub enum Admission {
    Admitted(Arc<Connection>),
    /// Its address has too many connections.
    Refused,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default(), freed: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is a place for another connection, which may be that of one that is only held.
    pub async fn wait_for_place(&self) {
        loop {
            let freed = self.freed.notified();
            if self.has_place() {
                return;
            }
            tokio::select! {
                () = freed => {}
                // A connection becomes silent without an event.
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
        }
    }

    /// Returns whether there is a place. If all are taken, closes the connection that has been idle for longest, or else one that has
    /// sent nothing.
    fn has_place(&self) -> bool {
        let table = self.table();
        if table.used() < self.limits.places {
            return true;
        }
        match table.oldest_idle(None).or_else(|| table.oldest_silent(None)) {
            Some(connection) => {
                connection.close_or_cut();
                true
            }
            None => false,
        }
    }

    /// Gives a new connection its place. Called after `wait_for_place`.
    pub fn admit(&self, address: IpAddr) -> Admission {
        let mut table = self.table();
        if table.used_by(address) >= self.limits.per_address {
            // The address makes room for itself, so that it cannot be locked out by its own idle connections.
            match table.oldest_idle(Some(address)).or_else(|| table.oldest_silent(Some(address))) {
                Some(connection) => connection.close_or_cut(),
                None => return Admission::Refused,
            }
        }
        let used = table.used();
        if used >= self.limits.places / 2
            && let Some(connection) = table.oldest_idle(None)
        {
            connection.close_or_cut();
        }
        let id = table.next_id;
        table.next_id += 1;
        let connection = Arc::new(Connection {
            id,
            address,
            reserved: used >= self.limits.places.saturating_sub(self.limits.reserved),
            limits: self.limits.clone(),
            state: Mutex::new(State {
                phase: Phase::Head(Instant::now()),
                trusted: false,
                stall: None,
                buffered: 0,
                taken: 0,
            }),
            close: CancellationToken::new(),
            cut: CancellationToken::new(),
        });
        table.open.insert(id, connection.clone());
        Admission::Admitted(connection)
    }

    /// Forgets a connection that has ended.
    pub fn remove(&self, connection: &Connection) {
        self.release_all(connection);
        self.table().open.remove(&connection.id);
        self.freed.notify_waiters();
    }

    /// Closes every connection after the request that it may be answering.
    pub fn close_all(&self) {
        self.table().open.values().for_each(|connection| connection.close.cancel());
    }

    /// Ends connections whose time is over, until the server stops.
    pub async fn sweep_until(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            self.sweep();
        }
    }

    fn sweep(&self) {
        for connection in self.table().open.values() {
            match connection.overdue() {
                Some(Overdue::Idle) => connection.close.cancel(),
                Some(overdue) => {
                    tracing::debug!(?overdue, "a connection is cut, because its client is too slow");
                    connection.cut.cancel();
                }
                None => {}
            }
        }
    }

    /// Counts bytes of an answer until the connection's client has read them. Waits for room, which clients that do not read have to
    /// make. Returns whether there is room.
    pub async fn take_room(&self, connection: &Connection, bytes: usize) -> bool {
        if self.try_take_room(connection, bytes) {
            return true;
        }
        // An answer needs memory while it waits, so only a part of the room may be waited for.
        let Some(_waiting) = self.wait_with(bytes) else { return false };
        let deadline = Instant::now() + ROOM_WITHIN;
        loop {
            let freed = self.freed.notified();
            if self.try_take_room(connection, bytes) {
                return true;
            }
            // A client counts as one that does not read without an event.
            let again = Instant::now() + SWEEP_INTERVAL;
            if tokio::time::timeout_at(deadline.min(again), freed).await.is_err() && Instant::now() >= deadline {
                return false;
            }
        }
    }

    /// Counts the bytes of an answer that waits, if not too many wait.
    fn wait_with(&self, bytes: usize) -> Option<WaitingAnswer<'_>> {
        let mut table = self.table();
        if table.waiting + bytes > (self.limits.answers_mb << 20) / 4 {
            return None;
        }
        table.waiting += bytes;
        Some(WaitingAnswer { connections: self, bytes })
    }

    /// Counts bytes of an answer if there is room for them. If not, connections whose clients do not read are cut, the one with the
    /// most bytes first, so that there will be room.
    pub fn try_take_room(&self, connection: &Connection, bytes: usize) -> bool {
        let mut table = self.table();
        let most = self.limits.answers_mb << 20;
        let needed = (table.buffered + bytes).saturating_sub(most);
        if needed == 0 {
            table.buffered += bytes;
            connection.state().buffered += bytes;
            return true;
        }
        let mut stalled: Vec<(usize, &Arc<Connection>)> = table
            .open
            .values()
            .filter(|other| other.id != connection.id && !other.cut.is_cancelled())
            .filter_map(|other| Some((other.stalled_bytes()?, other)))
            .collect();
        stalled.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut freed = 0;
        for (bytes, other) in stalled {
            if freed >= needed {
                break;
            }
            tracing::info!(
                bytes,
                "a connection is cut, because its client does not read its answer and others need the room"
            );
            other.cut.cancel();
            freed += bytes;
        }
        false
    }

    /// The client of a connection took everything that was written.
    pub fn flushed(&self, connection: &Connection) {
        let taken = {
            let mut state = connection.state();
            state.stall = None;
            std::mem::take(&mut state.taken)
        };
        if taken > 0 {
            self.release_room(connection, taken);
        }
    }

    /// Gives back the room of bytes that the client has read, or will never read.
    fn release_room(&self, connection: &Connection, bytes: usize) {
        let mut table = self.table();
        let mut state = connection.state();
        let bytes = bytes.min(state.buffered);
        state.buffered -= bytes;
        table.buffered = table.buffered.saturating_sub(bytes);
        drop(state);
        drop(table);
        self.freed.notify_waiters();
    }

    fn release_all(&self, connection: &Connection) {
        let bytes = connection.state().buffered;
        self.release_room(connection, bytes);
    }
}

impl Table {
    /// Returns the number of places that are taken. A connection that is being closed has left its place.
    fn used(&self) -> usize {
        self.open.values().filter(|connection| !connection.is_closing()).count()
    }

    fn used_by(&self, address: IpAddr) -> usize {
        self.open.values().filter(|connection| connection.address == address && !connection.is_closing()).count()
    }

    /// Returns the connection that has waited for longest for its next request.
    fn oldest_idle(&self, address: Option<IpAddr>) -> Option<&Arc<Connection>> {
        self.oldest(address, |state| match state.phase {
            Phase::Idle(since) if state.stall.is_none() => Some(since),
            _ => None,
        })
    }

    /// Returns the connection that has waited for longest for the head of a request, without ever having sent one that was admitted.
    fn oldest_silent(&self, address: Option<IpAddr>) -> Option<&Arc<Connection>> {
        self.oldest(address, |state| match state.phase {
            Phase::Head(since) if !state.trusted && since.elapsed() >= SILENT => Some(since),
            _ => None,
        })
    }

    fn oldest(
        &self,
        address: Option<IpAddr>,
        waiting_since: impl Fn(&State) -> Option<Instant>,
    ) -> Option<&Arc<Connection>> {
        let candidates = self.open.values().filter(|connection| {
            !connection.is_closing() && address.is_none_or(|address| connection.address == address)
        });
        let waiting = candidates.filter_map(|connection| Some((waiting_since(&connection.state())?, connection)));
        waiting.min_by_key(|(since, _)| *since).map(|(_, connection)| connection)
    }
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overdue {
    Idle,
    Head,
    Write,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closing(&self) -> bool {
        self.close.is_cancelled() || self.cut.is_cancelled()
    }

    /// Ends a connection that only waits for its client.
    fn close_or_cut(&self) {
        let is_idle = matches!(self.state().phase, Phase::Idle(_));
        if is_idle { self.close.cancel() } else { self.cut.cancel() }
    }

    /// Returns the time for the body of a request.
    pub fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.limits.body_seconds)
    }

    /// Returns the size of the largest answer, in bytes.
    pub fn answer_bytes(&self) -> usize {
        self.limits.answer_mb << 20
    }

    /// Returns how long the connection may be idle, in seconds.
    pub fn idle_seconds(&self) -> u64 {
        self.limits.idle_seconds
    }

    /// Bytes of a request arrived.
    pub fn on_read(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Idle(_)) {
            state.phase = Phase::Head(Instant::now());
        }
    }

    /// The head of a request is complete.
    pub fn on_request(&self) {
        self.state().phase = Phase::Answer;
    }

    /// The answer is complete, although the client may not have read all of it.
    pub fn on_answered(&self) {
        self.state().phase = Phase::Idle(Instant::now());
    }

    /// The client took some bytes of an answer.
    pub fn on_written(&self, bytes: usize) {
        if let Some(stall) = &mut self.state().stall {
            stall.taken += bytes as u64;
        }
    }

    /// The client takes no more bytes at the moment.
    pub fn on_stalled(&self) {
        let mut state = self.state();
        state.stall.get_or_insert(Stall { since: Instant::now(), taken: 0 });
    }

    /// Hyper took bytes that were counted. Their room is free when everything is written.
    pub fn release_when_flushed(&self, bytes: usize) {
        self.state().taken += bytes;
    }

    /// A request with a valid identity came over this connection, which may keep its place.
    pub fn trust(&self) {
        self.state().trusted = true;
    }

    /// Returns whether the connection has a place that it may not keep, so that it is closed after this answer.
    pub fn must_leave(&self) -> bool {
        self.reserved && !self.state().trusted
    }

    fn overdue(&self) -> Option<Overdue> {
        let state = self.state();
        let seconds = Duration::from_secs;
        if let Some(stall) = state.stall {
            let elapsed = stall.since.elapsed();
            let reads = stall.taken >= elapsed.as_secs() * LEAST_BYTES_PER_SECOND;
            if elapsed >= seconds(self.limits.write_seconds) && !reads {
                return Some(Overdue::Write);
            }
            return None;
        }
        match state.phase {
            Phase::Idle(since) => (since.elapsed() >= seconds(self.limits.idle_seconds)).then_some(Overdue::Idle),
            Phase::Head(since) => {
                let most = seconds(self.limits.head_seconds);
                let most = if self.reserved && !state.trusted { most.min(RESERVED_HEAD) } else { most };
                (since.elapsed() >= most).then_some(Overdue::Head)
            }
            Phase::Answer => None,
        }
    }

    /// Returns the bytes that wait for a client that does not take them.
    fn stalled_bytes(&self) -> Option<usize> {
        let state = self.state();
        let stalled = state.stall.is_some_and(|stall| stall.since.elapsed() >= STALLED);
        (stalled && state.buffered > 0).then_some(state.buffered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn limits() -> ConnectionLimits {
        ConnectionLimits { places: 8, reserved: 2, per_address: 6, answer_mb: 1, answers_mb: 2, ..Default::default() }
    }

    fn admitted(connections: &Connections, address: IpAddr) -> Arc<Connection> {
        match connections.admit(address) {
            Admission::Admitted(connection) => connection,
            Admission::Refused => panic!("refused"),
        }
    }

    /// Opens connections that wait for their next request, the first of them for longest.
    async fn idle(connections: &Connections, address: IpAddr, count: usize) -> Vec<Arc<Connection>> {
        let mut opened = Vec::new();
        for _ in 0..count {
            let connection = admitted(connections, address);
            connection.on_request();
            connection.on_answered();
            tokio::time::advance(Duration::from_millis(10)).await;
            opened.push(connection);
        }
        opened
    }

    fn closed(connections: &[Arc<Connection>]) -> Vec<bool> {
        connections.iter().map(|connection| connection.is_closing()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn above_half_of_the_places_the_oldest_idle_connection_makes_room() {
        let connections = Connections::new(limits());
        let opened = idle(&connections, HERE, 4).await;
        assert_eq!(closed(&opened), [false; 4]);
        admitted(&connections, THERE);
        assert_eq!(closed(&opened), [true, false, false, false]);
        opened[1].on_request();
        admitted(&connections, THERE);
        assert_eq!(closed(&opened), [true, false, true, false], "one that answers a request stays");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_limit_and_makes_room_for_itself() {
        let connections = Connections::new(ConnectionLimits { per_address: 2, ..limits() });
        let busy = admitted(&connections, HERE);
        busy.on_request();
        let waiting = idle(&connections, HERE, 1).await;
        admitted(&connections, HERE).on_request();
        assert_eq!(closed(&waiting), [true]);
        assert!(matches!(connections.admit(HERE), Admission::Refused));
        assert!(matches!(connections.admit(THERE), Admission::Admitted(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_places_are_kept_only_by_requests_with_an_identity() {
        let connections = Connections::new(ConnectionLimits { per_address: 100, ..limits() });
        let first: Vec<_> = (0..6).map(|_| admitted(&connections, HERE)).collect();
        assert!(first.iter().all(|connection| !connection.must_leave()));
        let (with_key, without) = (admitted(&connections, HERE), admitted(&connections, HERE));
        assert!(with_key.must_leave() && without.must_leave());
        with_key.on_request();
        with_key.trust();
        assert!(!with_key.must_leave());
        tokio::time::advance(RESERVED_HEAD).await;
        connections.sweep();
        assert!(without.is_closing() && !with_key.is_closing() && !first[0].is_closing());
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_places_are_taken_a_silent_connection_makes_room_and_a_busy_one_does_not() {
        let connections = Connections::new(ConnectionLimits { per_address: 100, ..limits() });
        let opened: Vec<_> = (0..8).map(|_| admitted(&connections, HERE)).collect();
        assert!(!connections.has_place(), "all of them were opened just now");
        opened[1..].iter().for_each(|connection| connection.on_request());
        tokio::time::advance(SILENT).await;
        assert!(connections.has_place() && opened[0].is_closing());
        admitted(&connections, HERE).on_request();
        assert!(!connections.has_place());
        connections.remove(&opened[5]);
        assert!(connections.has_place());
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_of_waiting_has_its_end() {
        let connections = Connections::new(limits());
        let (head, idle, busy, stalled, slow) = (
            admitted(&connections, HERE),
            admitted(&connections, HERE),
            admitted(&connections, HERE),
            admitted(&connections, HERE),
            admitted(&connections, HERE),
        );
        for connection in [&idle, &busy, &stalled, &slow] {
            connection.on_request();
        }
        idle.on_answered();
        stalled.on_stalled();
        slow.on_stalled();
        let closing = || [&head, &idle, &busy, &stalled, &slow].map(|connection| connection.is_closing());
        let mut passed = 0;
        let mut ended = Vec::new();
        while passed < 200 {
            tokio::time::advance(Duration::from_secs(1)).await;
            passed += 1;
            slow.on_written(2_000);
            connections.sweep();
            ended.push((passed, closing()));
        }
        ended.dedup_by_key(|(_, closing)| *closing);
        let expected = [
            (1, [false; 5]),
            (15, [true, false, false, false, false]),
            (30, [true, false, false, true, false]),
            (75, [true, true, false, true, false]),
        ];
        assert_eq!(ended, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_do_not_read_make_room_for_the_answers_of_others() {
        let connections = Connections::new(limits());
        let (reads_not, reads, third) =
            (admitted(&connections, HERE), admitted(&connections, HERE), admitted(&connections, HERE));
        assert!(connections.take_room(&reads_not, 1 << 20).await && connections.take_room(&reads, 1 << 20).await);
        reads_not.on_stalled();
        assert!(!connections.try_take_room(&third, 10) && !reads_not.is_closing(), "it stalled just now");
        tokio::time::advance(STALLED).await;
        assert!(!connections.try_take_room(&third, 10));
        assert!(reads_not.is_closing() && !reads.is_closing());
        connections.remove(&reads_not);
        assert!(connections.try_take_room(&third, 10));
        connections.release_room(&reads, 1 << 20);
        connections.remove(&third);
        assert_eq!(connections.table().buffered, 0);
    }
}
