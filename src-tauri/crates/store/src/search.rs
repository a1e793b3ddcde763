//! Finding chats by their words.

use crate::Result;
use contract::ConversationId;
use rusqlite::{Connection, params_from_iter};

/// Chats given back at most.
const MOST: usize = 200;
/// Words of a query that count; what comes after is not looked for.
const WORDS: usize = 16;

/// Chats whose title holds every word, the one used last first, then those with a message that holds every word,
/// the best match first. The index knows runs of three characters; shorter words, which are normal in Chinese,
/// are looked for in the text itself.
pub(crate) fn search(db: &Connection, query: &str) -> Result<Vec<ConversationId>> {
    let words: Vec<String> =
        query.replace('\0', " ").split_whitespace().take(WORDS).map(str::to_lowercase).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Vec<ConversationId> = Vec::new();
    let mut titles =
        db.prepare_cached("SELECT id, title FROM conversations ORDER BY updated_at DESC, id DESC")?;
    let mut rows = titles.query([])?;
    while let Some(row) = rows.next()? {
        let title = row.get::<_, String>(1)?.to_lowercase();
        if words.iter().all(|word| title.contains(word)) {
            found.push(ConversationId(row.get(0)?));
        }
    }

    let (long, short): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.chars().count() >= 3);
    let indexed: Vec<String> = long.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    if !indexed.is_empty() {
        values.push(indexed.join(" AND "));
        conditions.push(format!("items_fts MATCH ?{}", values.len()));
    }
    for word in short {
        values.push(format!("%{}%", like(word)));
        conditions.push(format!("items_fts.text LIKE ?{} ESCAPE '\\'", values.len()));
    }
    // Only a match has a rank.
    let rank = if indexed.is_empty() { "0" } else { "rank" };
    let sql = format!(
        "SELECT conversations.id FROM (SELECT rowid AS seq, {rank} AS rank FROM items_fts WHERE {}) AS fts \
         JOIN items ON items.seq = fts.seq JOIN conversations ON conversations.id = items.conversation_id \
         GROUP BY conversations.id ORDER BY min(fts.rank), conversations.updated_at DESC, conversations.id DESC LIMIT {MOST}",
        conditions.join(" AND "),
    );
    let mut rows = db.prepare_cached(&sql)?;
    let rows = rows.query_map(params_from_iter(values), |row| Ok(ConversationId(row.get(0)?)))?;
    for id in rows {
        let id = id?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found.truncate(MOST);
    Ok(found)
}

/// A word as it stands for itself in a LIKE pattern.
pub(crate) fn like(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if matches!(c, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
