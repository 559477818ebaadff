//! Decides whether a sentence can have a verb.
//! Invariant: in doubt a word counts as a verb, so that the rule about verbs refuses only sentences that certainly have none.

/// The auxiliary verbs, and irregular finite forms of other verbs.
const FINITE: &str = "am is are was were be been being has have had do does did can could may might must shall should will would \
    cannot isn't aren't wasn't weren't doesn't don't didn't can't won't hasn't haven't couldn't wouldn't shouldn't needn't \
    became began broke brought built bought came caught chose cut dealt did drew drove ate fell felt fed fought found fled flew forgot \
    froze gave got went grew held hid hit hurt kept knew laid led left lent let lost made meant met paid put quit ran rang read \
    rose said saw sold sent set shook shut sank sat slept slid spent split spoke spread stood stole stuck struck swore swept \
    swam took taught tore told thought threw understood won wore wrote wound woke bound lay hung sought bent became overwrote \
    chosen begun broken drawn driven eaten fallen forgotten frozen given gone grown hidden known seen shaken spoken stolen taken \
    thrown worn written overwritten done shown proven";

/// The base forms of verbs that occur in comments. The other forms are derived from these.
const BASE: &str = "abort accept access accompany account accumulate achieve acknowledge acquire act activate adapt add address adjust \
    admit adopt advance advertise affect agree aim align allocate allow alter amount announce answer anticipate appear append \
    apply approve arise arm arrange arrive ask assemble assert assign associate assume attach attempt authenticate authorize \
    avoid await back balance base batch bear become begin behave believe belong bill bind block boot borrow bound break bring \
    buffer build bump bundle burn buy bypass cache calculate call cancel capture care carry cast catch cause change charge chase \
    check choose claim clamp classify clean clear click climb clone close coalesce coerce collapse collect collide combine come \
    commit communicate compare compile complain complete compose compress compute concatenate conclude configure confirm \
    conflict confuse connect consider consist construct consult consume contain continue contribute control convert convey copy \
    correct correspond cost count cover crash create cross cut deal debug decide declare decline decode decompress decrease \
    decrement decrypt deduplicate default defer define degrade delay delegate delete deliver demand deny depend deploy derive \
    describe deserialize deserve detach detect determine differ digest disable disagree disappear discard disconnect discover \
    dispatch display distinguish distribute divide document double download draft drain draw drift drive drop dump duplicate \
    echo edit eject elapse emit employ enable encode encounter encrypt end enforce ensure enter enumerate equal erase escape \
    establish estimate evaluate evict examine exceed except exchange exclude execute exhaust exist exit expand expect expire \
    explain export expose express extend extract face fail fake fall feed fetch fill filter find finish fire fit fix flag flatten \
    flip flow flush fold follow forbid force forge forget fork form format forward free freeze fuel fulfil gain gate gather \
    generate get give go govern grab grant group grow guarantee guard guess halt hand handle hang happen hash have head hear help hide hit \
    hold honour host hurt identify ignore imitate implement imply import improve include increase increment indent index \
    indicate infer inform inherit initialize inject insert inspect install intend interpret interrupt introduce invalidate \
    invent invert invite invoke involve isolate issue iterate join judge jump justify keep kill know lack lag land last lay lead \
    leak lean learn leave lend let level lie lift limit link list listen live load lock log look lose lower maintain make manage \
    map march mark mask match matter mean measure meet merge migrate mind mint mirror miss mistake mix mock model modify move \
    multiply mutate name narrow need neglect nest normalize note notice notify number obey observe obtain occupy occur offer \
    omit open operate order outlive overflow override overtake overwrite own pack page pair panic park parse partition pass \
    patch pause pay peek perform permit persist pick pin place plan play point poison poll populate post postpone precede \
    prefer prefix prepare present preserve press pretend prevent print proceed process produce profile prohibit promise promote \
    propagate protect prove provide prune publish pull purge push put qualify query queue quit quote raise range rank rate reach \
    react read rebuild recall receive recognize recommend reconcile reconnect reconstruct record recover recurse redact redirect \
    reduce refer refill reflect refresh refuse regard register reject relate relay release reload rely remain remember remind \
    remove rename render reorder repair repeat replace replay reply report represent reproduce request require reread rerun \
    reserve reset resist resolve respect respond rest restart restore restrict result resume retain retrieve retry return \
    reuse reveal revert review revoke rewind rewrite ride risk roll rotate round route run sample satisfy save say scan schedule \
    score scrape scroll search seal see seed seek seem select sell send separate serialize serve set settle shake shape share shift \
    ship shorten show shrink shut sign signal simplify simulate sink sit skip sleep slice slow smuggle snapshot solve sort sound \
    spare spawn speak specify spell spend spill split spread stack stage stall stamp stand start starve state stay steal step \
    stick stop store stream strip submit subscribe substitute subtract succeed suffice suggest suit sum supersede supply \
    support suppose suppress survive suspend swallow swap sweep switch synchronize take talk target teach tear tell tempt tend \
    terminate test think throw tick tie tighten tolerate touch trace track trade trail transfer transform translate transmit \
    trap travel traverse treat trigger trim trip truncate trust try tune turn type undergo understand undo unlink unlock unpack \
    unwind update upgrade upload use validate vanish vary verify view violate visit wait wake walk want warm warn waste watch \
    weigh win wipe withdraw withhold wonder work worry wrap write yield zero age amend await bail beat bisect blame bounce brace \
    budget cap cater chain chunk clip coin cool count crawl cycle dedupe dial disarm dodge drown dwell err fan flood fuse gauge \
    glue hoist hop hurry idle inline intersect juggle lapse lex lint loop lower manifest marshal nudge offload outgrow page pad \
    panic peel pipe plug pool prepend prompt quantify ration reap reclaim recompute re-read re-run reinterpret reopen requeue \
    rescan resend reside reshape resort restate reword ripple sanitize saturate scatter scope shadow shield shard sniff span \
    spin splice squeeze stat steer stub summarize surface taint tally tee throttle thrash toggle unify unroll unset unwrap usher \
    vendor vet void widen window wire zip hint promise contract spool arbitrate matter mimic";

/// The words after which a word that looks like a verb is a noun or an adjective.
const BEFORE_NOUN: &str = "the a an its their our your his my every no another of in on at by for with without from into onto per over under \
    between within after before until during through across against about as like than new old own whole several single empty";

/// The words that precede a noun in the singular or a verb in the third person: "one step" and "one reads".
const BEFORE_SINGULAR: &str = "one each every first last next same other this that";

/// Returns whether any word of the sentence can be a verb. With `participles`, words that end in `-ed` count as verbs too.
pub fn has_verb(sentence: &str, participles: bool) -> bool {
    let words: Vec<String> = sentence
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '(' | ')' | '/' | '—' | '–'))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).replace('’', "'").to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let noun_at = |at: usize| {
        let after_determiner = at > 0
            && (listed(BEFORE_NOUN, &words[at - 1])
                || listed(BEFORE_SINGULAR, &words[at - 1]) && !words[at].ends_with('s'));
        let before_of = words.get(at + 1).is_some_and(|next| next == "of");
        after_determiner || before_of
    };
    words.iter().enumerate().any(|(at, word)| {
        listed(FINITE, word)
            || contracted(word)
            || participles && word.len() > 3 && word.ends_with("ed")
            || is_form(word) && !noun_at(at)
    })
}

fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|entry| entry == word)
}

/// Returns whether a word contains a contracted verb, such as `it's`, `they're` or `we'll`.
fn contracted(word: &str) -> bool {
    ["it's", "that's", "there's", "let's"].contains(&word) || word.ends_with("'re") || word.ends_with("'ll")
}

/// Returns whether a word is the base form or the third person of a listed verb.
fn is_form(word: &str) -> bool {
    let prefixed = word.strip_prefix("re-").or_else(|| word.strip_prefix("un")).or_else(|| word.strip_prefix("re"));
    [Some(word), prefixed].into_iter().flatten().any(|word| {
        let stems = [
            Some(word.to_owned()),
            word.strip_suffix('s').map(str::to_owned),
            word.strip_suffix("es").map(str::to_owned),
            word.strip_suffix("ies").map(|stem| format!("{stem}y")),
        ];
        stems.into_iter().flatten().any(|stem| listed(BASE, &stem) || listed(BASE, &american(&stem)))
    })
}

/// Converts the stem of a verb from British to American spelling, in which the verbs are listed.
fn american(stem: &str) -> String {
    match stem.strip_suffix("ise") {
        Some(start) => format!("{start}ize"),
        None => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::has_verb;

    #[test]
    fn sentences_with_a_verb_pass() {
        for text in [
            "Returns the rows of a step.",
            "The store is open.",
            "Deletes unreferenced data after its retention period.",
            "Two owners never hold one lease.",
            "Blob before pointer: a crash leaves garbage.",
            "Serialises the value.",
            "It's empty.",
            "The first one reads the heap.",
            "Of two the last counts.",
            "Re-reads the row after a lost answer.",
        ] {
            assert!(has_verb(text, false), "{text}");
        }
    }

    #[test]
    fn phrases_without_one_do_not() {
        for text in [
            "The rows of one step.",
            "Name of the session.",
            "An iterator over all the claims, newest first.",
            "Half a second.",
            "As an HTTP header.",
            "Of standard input.",
        ] {
            assert!(!has_verb(text, true), "{text}");
        }
    }

    #[test]
    fn participles_count_only_where_asked_for() {
        assert!(has_verb("The rows selected by an index.", true));
        assert!(!has_verb("The rows selected by an index.", false));
    }
}
