//! Generates the data of the tracker (`World`) from a seed: a number that starts the random numbers.
//! Invariants: the same seed gives the same bytes of JSON in every build. Projects and people are the same for every seed. Within a
//! project, tickets are numbered from 1 in order of creation. A later comment has a higher id.

mod prng;
mod text;
mod words;

use crate::calendar::{LAST_DAY, SECONDS_PER_DAY, date, instant};
use crate::world::{Comment, Person, PersonRef, Project, State, Ticket, TicketRef, World};
use words::{COMMENTS, PEOPLE, PROJECTS, ProjectRow};

pub use prng::Prng;

/// The last day on which a generated ticket is created. It is before `LAST_DAY`, so that every ticket can get comments.
const LAST_TICKET_DAY: u64 = LAST_DAY - 12;

const COMMENT_COUNT: usize = 600;

/// The ticket that has more comments than fit on one page of the default size.
const DEBATED: (&str, u64) = ("OPS", 42);
const DEBATED_COMMENTS: usize = 45;

impl World {
    /// Generates the data of a seed.
    pub fn seeded(seed: u64) -> World {
        let mut prng = Prng::stream(seed, "tickets");
        let generated: Vec<GeneratedTicket> = PROJECTS.iter().flat_map(|row| tickets(&mut prng, row)).collect();
        World {
            projects: PROJECTS.iter().map(project).collect(),
            people: people(),
            comments: comments(&mut Prng::stream(seed, "comments"), &generated),
            tickets: generated.into_iter().map(|generated| generated.ticket).collect(),
        }
    }
}

/// A generated ticket, with the data from which its comments are generated.
struct GeneratedTicket {
    ticket: Ticket,
    /// The project of the ticket, whose members are the authors of comments.
    row: &'static ProjectRow,
    /// The moment of creation in seconds since 1970-01-01.
    created: u64,
}

fn people() -> Vec<Person> {
    PEOPLE
        .iter()
        .map(|&(id, name, team, joined)| Person {
            id: id.to_owned(),
            name: name.to_owned(),
            // One id is not ASCII; a mail address must be.
            email: format!("{}@example.com", id.replace('ë', "e")),
            team,
            joined: joined.to_owned(),
        })
        .collect()
}

fn project(row: &ProjectRow) -> Project {
    Project {
        key: row.key.to_owned(),
        name: row.name.to_owned(),
        about: row.about.to_owned(),
        lead: row.lead.to_owned(),
        created_at: instant(row.created * SECONDS_PER_DAY + 9 * 3_600),
    }
}

fn tickets(prng: &mut Prng, row: &'static ProjectRow) -> Vec<GeneratedTicket> {
    let first = (row.created + 1) * SECONDS_PER_DAY;
    let span = LAST_TICKET_DAY * SECONDS_PER_DAY - first;
    let mut created: Vec<u64> = (0..row.tickets).map(|_| first + prng.below(span)).collect();
    created.sort_unstable();
    let numbered = (1..).zip(created);
    numbered
        .map(|(number, created)| GeneratedTicket { ticket: ticket(prng, row, number, created), row, created })
        .collect()
}

fn ticket(prng: &mut Prng, row: &ProjectRow, number: u64, created: u64) -> Ticket {
    let text::TicketTexts { title, body, labels } = text::compose(prng, row.places);
    let state = state(prng, number * 100 / row.tickets as u64);
    let is_owned = match state {
        State::Open => prng.chance(45),
        State::Doing => true,
        State::Done => prng.chance(95),
    };
    let day = created / SECONDS_PER_DAY;
    Ticket {
        project: row.key.to_owned(),
        number,
        title,
        state,
        // The priority is the mean of two random numbers, so most tickets have a middle priority and few have 1 or 5.
        priority: 1 + (prng.below(5) + prng.below(5)).div_ceil(2),
        votes: votes(prng),
        labels,
        owner: is_owned.then(|| member(prng, row)),
        reporter: member(prng, row),
        created_at: instant(created),
        due: prng.chance(55).then(|| date(day + 7 + prng.below(110))),
        body,
    }
}

/// Draws a state. An older ticket is more likely done. `youth` is 0 for the oldest ticket of the project and 100 for the newest.
fn state(prng: &mut Prng, youth: u64) -> State {
    match prng.below(100) {
        roll if roll < 85 - youth * 3 / 4 => State::Done,
        roll if roll < 92 => State::Open,
        _ => State::Doing,
    }
}

/// Draws a number of votes. Most tickets have a few votes, and some have hundreds.
fn votes(prng: &mut Prng) -> u64 {
    let ceiling = *prng.pick(&[3, 8, 20, 60, 240]);
    prng.below(ceiling)
}

fn comments(prng: &mut Prng, tickets: &[GeneratedTicket]) -> Vec<Comment> {
    let debated = tickets.iter().filter(|generated| (generated.row.key, generated.ticket.number) == DEBATED);
    let mut subjects: Vec<&GeneratedTicket> = debated.cycle().take(DEBATED_COMMENTS).collect();
    while subjects.len() < COMMENT_COUNT {
        subjects.push(prng.pick(tickets));
    }
    let mut dated: Vec<(u64, &GeneratedTicket)> = subjects
        .into_iter()
        .map(|generated| (generated.created + 600 + prng.below(11 * SECONDS_PER_DAY), generated))
        .collect();
    // The sort is stable, so two comments of one second keep the order in which they were drawn.
    dated.sort_by_key(|(written, _)| *written);
    let numbered = (1..).zip(dated);
    numbered.map(|(id, (written, generated))| comment(prng, id, written, generated)).collect()
}

fn comment(prng: &mut Prng, id: u64, written: u64, generated: &GeneratedTicket) -> Comment {
    Comment {
        id,
        ticket: TicketRef { project: generated.ticket.project.clone(), number: generated.ticket.number },
        author: member(prng, generated.row),
        text: (*prng.pick(&COMMENTS)).to_owned(),
        created_at: instant(written),
    }
}

fn member(prng: &mut Prng, row: &ProjectRow) -> PersonRef {
    let id = *prng.pick(row.members);
    let name = PEOPLE.iter().find(|person| person.0 == id).map_or(id, |person| person.1);
    PersonRef { id: id.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::SEED;
    use crate::world::Choice;

    /// Returns the FNV-1a hash of the JSON, which changes with any byte of the world.
    fn fingerprint(world: &World) -> u64 {
        let json = serde_json::to_vec(world).unwrap();
        json.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }

    #[test]
    fn one_seed_gives_one_world() {
        assert_eq!(World::seeded(7), World::seeded(7));
        assert_ne!(World::seeded(7).tickets, World::seeded(8).tickets);
    }

    /// The tests of the demo catalog and the documentation quote the generated data. If the fingerprint changes, they must be reviewed.
    #[test]
    fn the_served_world_does_not_change() {
        let world = World::seeded(SEED);
        assert_eq!(format!("{:016x}", fingerprint(&world)), "32b9df97c52b804b");
        let debated = world.ticket(DEBATED.0, DEBATED.1).map(|ticket| ticket.title.as_str());
        assert_eq!(debated, Some("Split the metrics store into smaller parts"));
    }

    #[test]
    fn the_world_has_the_documented_size() {
        let world = World::seeded(SEED);
        let mut per_project: BTreeMap<&str, usize> = BTreeMap::new();
        for ticket in &world.tickets {
            *per_project.entry(&ticket.project).or_default() += 1;
        }
        assert_eq!((world.projects.len(), world.people.len()), (6, 24));
        assert_eq!((world.tickets.len(), world.comments.len()), (321, 600));
        assert!(per_project["OPS"] > 100);
        let debate = world.comments.iter().filter(|c| (c.ticket.project.as_str(), c.ticket.number) == DEBATED);
        assert!(debate.count() >= DEBATED_COMMENTS);
    }

    #[test]
    fn every_list_is_sorted_by_a_unique_key() {
        let world = World::seeded(SEED);
        assert!(world.projects.is_sorted_by(|a, b| a.key < b.key));
        assert!(world.people.is_sorted_by(|a, b| a.id < b.id));
        assert!(world.tickets.is_sorted_by(|a, b| (&a.project, a.number) < (&b.project, b.number)));
        assert!(world.comments.is_sorted_by(|a, b| a.id < b.id));
        assert!(world.comments.is_sorted_by(|a, b| a.created_at <= b.created_at));
        for row in &PROJECTS {
            let of_project = world.tickets.iter().filter(|ticket| ticket.project == row.key);
            assert!(of_project.clone().map(|ticket| ticket.number).eq(1..=row.tickets as u64));
            assert!(of_project.is_sorted_by(|a, b| a.created_at <= b.created_at));
        }
    }

    #[test]
    fn every_reference_resolves() {
        let world = World::seeded(SEED);
        let known = |person: &PersonRef| world.person(&person.id).is_some_and(|found| found.name == person.name);
        for project in &world.projects {
            assert!(world.person(&project.lead).is_some());
        }
        for row in &PROJECTS {
            assert!(row.members.iter().all(|id| world.person(id).is_some()));
        }
        for ticket in &world.tickets {
            assert!(world.project(&ticket.project).is_some_and(|project| project.created_at < ticket.created_at));
            assert!(known(&ticket.reporter) && ticket.owner.as_ref().is_none_or(known));
        }
        for comment in &world.comments {
            let ticket = world.ticket(&comment.ticket.project, comment.ticket.number).unwrap();
            assert!(ticket.created_at < comment.created_at && known(&comment.author));
        }
    }

    #[test]
    fn the_world_has_every_case_that_a_client_must_handle() {
        let world = World::seeded(SEED);
        let any = |test: &dyn Fn(&Ticket) -> bool| world.tickets.iter().any(test);
        assert!(State::ALL.iter().all(|state| any(&|ticket| ticket.state == *state)));
        assert!((1..=5).all(|priority| any(&|ticket| ticket.priority == priority)));
        assert!(world.tickets.iter().all(|ticket| (1..=5).contains(&ticket.priority)));
        assert!(any(&|ticket| ticket.owner.is_none()) && any(&|ticket| ticket.due.is_none()));
        assert!(any(&|ticket| ticket.labels.is_empty()) && any(&|ticket| ticket.labels.len() > 2));
        assert!(any(&|ticket| ticket.body.is_empty()) && any(&|ticket| ticket.body.len() > 2_000));
        assert!(["\t", "\"", "\\", "\n\n", "太"].iter().all(|part| any(&|ticket| ticket.body.contains(part))));
        let owners: BTreeSet<&str> =
            world.tickets.iter().filter_map(|t| t.owner.as_ref()).map(|o| o.id.as_str()).collect();
        assert!(owners.contains("zoë") && !owners.contains("yuki"));
    }

    #[test]
    fn every_phrase_has_its_place_filled_in() {
        let json = serde_json::to_string(&World::seeded(SEED)).unwrap();
        assert!(!json.contains("{place}"));
    }
}
