// A server on the TypeScript SDK 2.x, which speaks both eras: on stdio, or with `http` on a port of the loopback that it
// says. What a server of the stateless era can do, one tool for each.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { completable, createMcpHandler, inputRequired, inputResponse, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const skills = await loadSkills(new URL('skills', import.meta.url).pathname);
const text = (words) => ({ content: [{ type: 'text', text: words }] });
/** Over HTTP every request has a server of its own, so what lasts stands here. */
const state = { grown: false, note: 'first' };
/** Tells of changes; over HTTP set once for all, on stdio by each server. */
let notify;

function server() {
    const server = new McpServer(
        { name: 'typescript-sdk', title: 'TypeScript SDK', version: '2.4.0' },
        {
            instructions: 'Ask it anything.',
            capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true }, logging: {} },
        },
    );
    const tell = notify ?? {
        toolsChanged: () => server.sendToolListChanged(),
        resourceUpdated: (uri) => server.server.sendResourceUpdated({ uri }),
    };
    const grown = () => server.registerTool('grown', { description: 'Was not there before' }, () => text('grown'));
    if (state.grown) grown();

    server.registerTool(
        'add',
        {
            title: 'Add',
            description: 'Adds two numbers',
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ sum: z.number() }),
            annotations: { readOnlyHint: true },
        },
        ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
    );
    server.registerTool('fail', { description: 'Always fails' }, () => ({ ...text('it broke'), isError: true }));
    server.registerTool('throw', { description: 'Breaks off' }, () => {
        throw new Error('it broke off');
    });
    server.registerTool('ask', { description: 'Asks for a name and a colour, one after the other' }, (context) => {
        const answers = context.mcpReq.inputResponses;
        const name = inputResponse(answers, 'name');
        const before = context.mcpReq.requestState();
        if (name.kind === 'missing' && !before) {
            const requestedSchema = z.object({ name: z.string() });
            return inputRequired({ inputRequests: { name: inputRequired.elicit({ message: 'Your name?', requestedSchema }) } });
        }
        if (name.kind === 'elicit' && name.action !== 'accept') return text(`no name: ${name.action}`);
        const colour = inputResponse(answers, 'colour');
        if (colour.kind === 'missing') {
            const requestedSchema = z.object({ colour: z.enum(['red', 'blue']) });
            return inputRequired({
                inputRequests: { colour: inputRequired.elicit({ message: 'Your colour?', requestedSchema }) },
                requestState: name.content.name,
            });
        }
        return text(`${before} likes ${colour.content.colour}`);
    });
    server.registerTool('visit', { description: 'Sends the person to an address' }, (context) => {
        const answer = inputResponse(context.mcpReq.inputResponses, 'link');
        if (answer.kind === 'missing') {
            return inputRequired({ inputRequests: { link: inputRequired.elicitUrl({ message: 'Please look', url: 'https://example.com/look' }) } });
        }
        return text(`visit: ${answer.action}`);
    });
    server.registerTool('folders-and-thoughts', { description: 'Asks for the folders and a model at once' }, (context) => {
        const answers = context.mcpReq.inputResponses;
        const roots = inputResponse(answers, 'roots');
        const thought = inputResponse(answers, 'thought');
        if (roots.kind === 'missing' || thought.kind === 'missing') {
            const messages = [{ role: 'user', content: { type: 'text', text: 'What is six times seven?' } }];
            return inputRequired({
                inputRequests: { roots: inputRequired.listRoots(), thought: inputRequired.createMessage({ messages, maxTokens: 50 }) },
            });
        }
        const { content } = thought.result;
        const said = Array.isArray(content) ? content[0].text : content.text;
        return text(`${roots.roots.map((root) => root.name).join(',')}: ${said}`);
    });
    server.registerTool('count', { description: 'Counts to three, saying so' }, async (context) => {
        for (const progress of [1, 2, 3]) {
            const progressToken = context.mcpReq._meta?.progressToken;
            await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3, message: `step ${progress}` } });
        }
        return text('three');
    });
    server.registerTool('wait', { description: 'Waits until it is told to stop' }, async (context) => {
        const { signal } = context.mcpReq;
        const progressToken = context.mcpReq._meta?.progressToken;
        if (progressToken !== undefined) {
            await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
        }
        await new Promise((stopped) => signal.addEventListener('abort', stopped));
        state.note = 'stopped';
        return text('stopped');
    });
    server.registerTool('grow', { description: 'Adds a tool' }, () => {
        if (!state.grown) {
            state.grown = true;
            grown();
            tell.toolsChanged();
        }
        return text('done');
    });
    server.registerTool('write', { description: 'Changes the note', inputSchema: z.object({ note: z.string() }) }, async ({ note }) => {
        state.note = note;
        await tell.resourceUpdated('note://it');
        return text('written');
    });
    server.registerTool('log', { description: 'Says something beside' }, async (context) => {
        await context.mcpReq.log('warning', 'said beside');
        return text('logged');
    });

    server.registerResource('note', 'note://it', { title: 'The note', mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: state.note }],
    }));
    const template = new ResourceTemplate('page://{chapter}/{page}', {
        list: undefined,
        complete: { chapter: (value) => ['one', 'two', 'three'].filter((name) => name.startsWith(value)) },
    });
    server.registerResource('page', template, { title: 'A page' }, (uri, { chapter, page }) => ({
        contents: [{ uri: uri.href, blob: Buffer.from(`${chapter}.${page}`).toString('base64'), mimeType: 'application/octet-stream' }],
    }));
    server.registerPrompt(
        'greeting',
        {
            title: 'Greeting',
            argsSchema: z.object({
                language: completable(z.string(), (value) => ['french', 'finnish'].filter((name) => name.startsWith(value))),
                word: completable(z.string(), (value, context) =>
                    (context?.arguments?.language === 'french' ? ['bonjour', 'salut'] : ['hei', 'moi']).filter((word) => word.startsWith(value)),
                ),
            }),
        },
        ({ language, word }) => ({
            description: `In ${language}`,
            messages: [{ role: 'user', content: { type: 'text', text: `Say ${word}` } }],
        }),
    );
    skills.attach(server);
    return server;
}

if (process.argv[2] === 'http') {
    const handler = createMcpHandler(server, { onerror: (error) => console.error(error) });
    notify = handler.notify;
    const http = createServer(async (request, response) => {
        const ended = new AbortController();
        response.on('close', () => ended.abort());
        const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
        const headers = Object.entries(request.headers).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
        const url = `http://${request.headers.host}${request.url}`;
        const answer = await handler.fetch(new Request(url, { method: request.method, headers, body, duplex: 'half', signal: ended.signal }));
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        if (!answer.body) return response.end();
        Readable.fromWeb(answer.body).on('error', () => response.destroy()).pipe(response);
    });
    http.listen(0, '127.0.0.1', () => console.log(`listening on ${http.address().port}`));
} else {
    serveStdio(server);
}
