//! The constants of the generated data: people, projects, and the phrases from which texts are composed.
//! Invariants: no list is empty. Rows are sorted by key. Members and leads are ids of `PEOPLE`. `{place}` in a phrase is replaced by one
//! of the project's places. Any change of this file changes the data that tests and documentation quote.

use crate::world::Team;
use crate::world::Team::{Platform, Product, Security, Support};

/// The id, name, team and joining date of each person.
pub const PEOPLE: [(&str, &str, Team, &str); 24] = [
    ("ada", "Ada Okafor", Platform, "2018-04-16"),
    ("amir", "Amir Haddad", Product, "2021-09-01"),
    ("bea", "Béatrice Laurent", Support, "2019-02-11"),
    ("chen", "Chen Wei", Platform, "2020-06-22"),
    ("dora", "Dora Lindqvist", Product, "2017-11-06"),
    ("elif", "Elif Şahin", Security, "2022-01-10"),
    ("emil", "Emil Novák", Platform, "2023-03-20"),
    ("farid", "Farid Rahimi", Support, "2020-10-05"),
    ("grace", "Grace Mbeki", Product, "2019-08-19"),
    ("hana", "Hana Kobayashi", Platform, "2021-05-03"),
    ("ines", "Inês Duarte", Product, "2022-07-18"),
    ("jonas", "Jonas Berg", Security, "2018-12-03"),
    ("kofi", "Kofi Asante", Platform, "2022-11-14"),
    ("lena", "Lena Fischer", Support, "2021-02-08"),
    ("mateo", "Mateo Vargas", Product, "2020-03-30"),
    ("nadia", "Nadia Petrova", Security, "2023-06-12"),
    ("omar", "Omar Said", Platform, "2019-05-27"),
    ("petra", "Petra Horvat", Support, "2022-04-04"),
    ("quinn", "Quinn O'Brien", Product, "2023-01-09"),
    ("rosa", "Rosa Almeida", Platform, "2017-09-25"),
    ("sven", "Sven Dahl", Security, "2020-08-17"),
    ("tara", "Tara Iyer", Product, "2021-11-29"),
    // This person is in no project and therefore owns no ticket.
    ("yuki", "Yuki Tanaka", Platform, "2026-03-09"),
    // This id tests whether a client percent-encodes path segments.
    ("zoë", "Zoë de Vries", Support, "2023-10-02"),
];

/// A project and the parameters of its tickets.
pub struct ProjectRow {
    pub key: &'static str,
    pub name: &'static str,
    pub about: &'static str,
    /// The id of the person who leads the project.
    pub lead: &'static str,
    /// The day of creation, in days since 1970-01-01.
    pub created: u64,
    /// The number of generated tickets of the project.
    pub tickets: usize,
    /// The ids of the people who report, own and comment on the tickets of the project.
    pub members: &'static [&'static str],
    /// The parts of the project's product. Each ticket is about one of these places.
    pub places: &'static [&'static str],
}

pub const PROJECTS: [ProjectRow; 6] = [
    ProjectRow {
        key: "API",
        name: "Public API",
        about: "The REST interface that customers and partners build on.",
        lead: "chen",
        created: 19_740,
        tickets: 56,
        members: &["ada", "amir", "chen", "grace", "kofi", "mateo"],
        places: &[
            "rate limiter",
            "webhook sender",
            "token endpoint",
            "cursor pagination",
            "bulk import endpoint",
            "request log",
            "error envelope",
            "sandbox tenant",
        ],
    },
    ProjectRow {
        key: "DOC",
        name: "Documentation",
        about: "Guides, reference pages and the examples that must keep compiling.",
        lead: "dora",
        created: 19_905,
        tickets: 12,
        members: &["bea", "dora", "lena"],
        places: &["quick start", "API reference", "changelog page", "search box", "glossary", "upgrade guide"],
    },
    ProjectRow {
        key: "MOB",
        name: "Mobile apps",
        about: "The iOS and Android apps, from one shared code base.",
        lead: "ines",
        created: 20_011,
        tickets: 27,
        members: &["hana", "ines", "quinn", "tara"],
        places: &[
            "sign-in screen",
            "offline cache",
            "push registration",
            "photo picker",
            "dark theme",
            "background sync",
            "deep link handler",
        ],
    },
    ProjectRow {
        key: "OPS",
        name: "Operations",
        about: "Everything that keeps production running: deploys, backups, alerts and the on-call rota.",
        lead: "rosa",
        created: 19_723,
        tickets: 118,
        members: &["ada", "emil", "farid", "hana", "kofi", "omar", "rosa", "zoë"],
        places: &[
            "nightly backup",
            "alert router",
            "deploy pipeline",
            "log shipper",
            "staging cluster",
            "certificate renewal",
            "on-call rota",
            "metrics store",
            "read replica",
            "status page",
        ],
    },
    ProjectRow {
        key: "SEC",
        name: "Security",
        about: "Hardening, audits and the handling of reported vulnerabilities.",
        lead: "jonas",
        created: 19_811,
        tickets: 34,
        members: &["elif", "jonas", "nadia", "omar", "sven"],
        places: &[
            "session cookie",
            "audit trail",
            "secret scanner",
            "two-factor enrolment",
            "dependency report",
            "password reset flow",
            "access review",
        ],
    },
    ProjectRow {
        key: "WEB",
        name: "Web app",
        about: "The browser client that most people know as “the product”.",
        lead: "grace",
        created: 19_758,
        tickets: 74,
        members: &["amir", "grace", "lena", "mateo", "petra", "quinn", "tara", "zoë"],
        places: &[
            "invoice table",
            "settings page",
            "onboarding tour",
            "export dialog",
            "notification drawer",
            "date picker",
            "team switcher",
            "search results",
            "comment editor",
        ],
    },
];

/// The kinds of tickets: the word that is the first label of each ticket of the kind, and the titles of the kind.
pub const KINDS: [(&str, &[&str]); 4] = [("bug", BUGS), ("feature", FEATURES), ("chore", CHORES), ("docs", DOCS)];

const BUGS: &[&str] = &[
    "{place} times out",
    "{place} fails without a message",
    "{place} shows stale data",
    "{place} returns the wrong total",
    "{place} drops the last entry",
    "{place} loses unsaved input",
    "{place} is slow",
    "{place} uses too much memory",
    "{place} crashes",
    "{place} ignores the time zone",
    "{place} reports \"unknown error\"",
    "{place} retries forever",
];

/// The condition that is appended to the title of a bug. An empty condition is included, so that some titles are short.
pub const WHEN: [&str; 13] = [
    "",
    " after a deploy",
    " when two runs overlap",
    " for accounts with more than 1,000 entries",
    " on the first day of the month",
    " while the database fails over",
    " if the name contains an apostrophe",
    " behind a corporate proxy",
    " with an expired token",
    " on a slow connection",
    " under load",
    " for users in Asia/Kathmandu",
    " when the disk is 90% full",
];

const FEATURES: &[&str] = &[
    "Add a dry-run mode to the {place}",
    "Let admins configure the {place}",
    "Show progress in the {place}",
    "Support keyboard navigation in the {place}",
    "Send a summary when the {place} changes",
    "Make the {place} work offline",
    "Offer CSV & JSON export from the {place}",
    "Group related entries in the {place}",
    "Remember the last choice in the {place}",
];

const CHORES: &[&str] = &[
    "Upgrade the libraries behind the {place}",
    "Remove dead settings from the {place}",
    "Move the {place} to the new cluster",
    "Add metrics to the {place}",
    "Raise test coverage of the {place}",
    "Rename confusing fields in the {place}",
    "Split the {place} into smaller parts",
    "Rotate the credentials of the {place}",
];

const DOCS: &[&str] = &[
    "Document the limits of the {place}",
    "Write a runbook for the {place}",
    "Explain error codes of the {place}",
    "Add screenshots of the {place}",
    "Fix broken links about the {place}",
];

/// The labels that are added after the kind. Some have characters that need encoding in a query: a space, `&`, `+`, `/`.
pub const LABELS: [&str; 10] = [
    "a11y",
    "c++",
    "customer",
    "flaky-test",
    "good first issue",
    "performance",
    "r&d",
    "regression",
    "ui/ux",
    "übersetzung",
];

pub const PARAGRAPHS: [&str; 16] = [
    "Seen twice this week on the {place}. A restart helps for about an hour.",
    "The {place} was last touched in the spring clean-up; nobody remembers why the limit is where it is.",
    "We agreed in the planning meeting to look at the {place} before the next release.",
    "Steps:\n\n1. Open the {place}\n2. Wait for a minute\n3. Try again\n\nExpected: the same result. Actual: nothing at all.",
    "> \"It worked yesterday, and I did not change a thing.\"\n\nThat is all the customer wrote about the {place}.",
    "Acceptance:\n\n- [ ] the {place} has a test\n- [ ] the change is in the release notes\n- [x] support knows",
    "The log has one line about the {place}:\n\n```\nERROR\tworker-3\tdeadline exceeded\tretry=5\n```",
    "Reported from München and São Paulo; people there write “naïve” names such as Zoë, Łukasz or 山田太郎. 🚀",
    "Call `reset(\"{place}\", force = true)` as a workaround, but only outside business hours.",
    "| case | before | after |\n|---|---:|---:|\n| small | 12 ms | 11 ms |\n| large | 4.8 s | 0.9 s |",
    "Possible causes: a full queue, a clock that is off by a few seconds, or a path like `C:\\temp\\new`.",
    "This blocks two customers. See also the discussion in the *weekly* notes.",
    "Not urgent, but it comes up in every demo of the {place}.",
    "The vendor's answer was: 'works as designed' -- we disagree.",
    "If we do this, the {place} no longer needs its own configuration file & the old one can go.",
    "Numbers from last month: 1,204 attempts, 37 failures, 3 complaints (≈ 0.25 %).",
];

pub const SERVICES: [&str; 6] = ["gateway", "scheduler", "worker-1", "worker-2", "worker-3", "storage"];

pub const MESSAGES: [&str; 7] = [
    "started",
    "queue depth 42",
    "retrying in 500 ms",
    "connection reset by peer",
    "deadline exceeded",
    "lease \"main\" expired",
    "done",
];

pub const COMMENTS: [&str; 20] = [
    "I can reproduce this.",
    "Cannot reproduce on the current build. Which version do you run?",
    "Happened again this morning, same trace.",
    "+1",
    "Taking this one.",
    "I will be away until Monday; feel free to take over.",
    "The fix is in review. It also covers the case where the list is empty.",
    "Let us split this: the quick fix now, the clean-up next month.",
    "> Which version do you run?\n\nThe one from Tuesday, with the default settings.",
    "Here is what I see:\n\n```\nstatus\tcount\nok\t981\nfailed\t19\n```",
    "A customer asked about this on the phone. They are patient, but it would be good to have a date.",
    "Merci beaucoup, ça marche très bien maintenant! 🎉",
    "Is this the same as the one we closed in autumn?",
    "Lowered the priority: there is a workaround.",
    "Raised the priority: the workaround does not help on mobile.",
    "Measured it:\n\n- cold: 4.1 s\n- warm: 0.3 s\n\nSo the cache works, but it is emptied too often.",
    "The word \"forever\" in the title is a bit strong: it stops after 5 attempts.",
    "Deployed to staging. Please check.",
    "Checked on staging, looks good to me.",
    "Documentation needs a line about this as well.",
];
