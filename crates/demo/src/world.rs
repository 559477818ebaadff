//! The data types of the tracker (projects, people, tickets, comments) in their JSON form, and lookups by key.
//! Invariants: each list is sorted (projects by key, people by id, tickets by project and number, comments by id), so a filtered list is
//! in a stable order. Every reference names an existing item.

use serde::Serialize;

/// All data of one tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct World {
    pub projects: Vec<Project>,
    pub people: Vec<Person>,
    pub tickets: Vec<Ticket>,
    pub comments: Vec<Comment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Project {
    /// The key, such as `OPS`. Upper and lower case differ.
    pub key: String,
    pub name: String,
    pub about: String,
    /// The id of the person who leads the project.
    pub lead: String,
    /// The moment of creation, such as `2026-03-31T09:14:05Z`.
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Person {
    pub id: String,
    pub name: String,
    pub email: String,
    pub team: Team,
    /// The date of joining, such as `2026-03-31`.
    pub joined: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ticket {
    /// The key of the project that has the ticket.
    pub project: String,
    /// The number of the ticket, which counts from 1 within its project.
    pub number: u64,
    pub title: String,
    pub state: State,
    /// The priority from 1 (most urgent) to 5.
    pub priority: u64,
    pub votes: u64,
    pub labels: Vec<String>,
    pub owner: Option<PersonRef>,
    pub reporter: PersonRef,
    pub created_at: String,
    /// The date on which the ticket is due.
    pub due: Option<String>,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// The id, which is unique over all tickets. Later comments have higher ids.
    pub id: u64,
    pub ticket: TicketRef,
    pub author: PersonRef,
    pub text: String,
    pub created_at: String,
}

/// A reference to a person in another item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PersonRef {
    pub id: String,
    pub name: String,
}

/// A reference to a ticket: the key of its project and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TicketRef {
    pub project: String,
    pub number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum State {
    Open,
    Doing,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum Team {
    Platform,
    Product,
    Support,
    Security,
}

/// An enum whose values are words in JSON, in query parameters and in error messages.
pub trait Choice: Copy + 'static {
    const ALL: &'static [Self];

    /// Returns the word for the value in JSON and in queries.
    fn word(self) -> &'static str;
}

impl Choice for State {
    const ALL: &'static [State] = &[State::Open, State::Doing, State::Done];

    fn word(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Doing => "doing",
            State::Done => "done",
        }
    }
}

impl Choice for Team {
    const ALL: &'static [Team] = &[Team::Platform, Team::Product, Team::Support, Team::Security];

    fn word(self) -> &'static str {
        match self {
            Team::Platform => "platform",
            Team::Product => "product",
            Team::Support => "support",
            Team::Security => "security",
        }
    }
}

impl From<State> for &'static str {
    fn from(state: State) -> &'static str {
        state.word()
    }
}

impl From<Team> for &'static str {
    fn from(team: Team) -> &'static str {
        team.word()
    }
}

impl From<&Person> for PersonRef {
    fn from(person: &Person) -> PersonRef {
        PersonRef { id: person.id.clone(), name: person.name.clone() }
    }
}

impl World {
    pub fn project(&self, key: &str) -> Option<&Project> {
        self.projects.iter().find(|project| project.key == key)
    }

    pub fn person(&self, id: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.id == id)
    }

    pub fn ticket(&self, project: &str, number: u64) -> Option<&Ticket> {
        self.tickets.iter().find(|ticket| ticket.project == project && ticket.number == number)
    }
}

impl Ticket {
    pub fn is_owned_by(&self, id: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.id == id)
    }
}

impl TicketRef {
    /// Returns whether this reference is to `ticket`.
    pub fn names(&self, ticket: &Ticket) -> bool {
        self.project == ticket.project && self.number == ticket.number
    }
}
