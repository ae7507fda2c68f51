// What a Node program does with threads. For ci/programs.
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { createServer, get } from 'node:http';
import { execSync } from 'node:child_process';
import { pbkdf2Sync, pbkdf2, createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

if (!isMainThread) {
    const key = pbkdf2Sync('x', String(workerData), 1000, 16, 'sha1').toString('hex');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    parentPort.postMessage(key);
} else {
    const self = fileURLToPath(import.meta.url);
    const digest = (texts) => createHash('sha1').update(texts.join()).digest('hex');
    const results = (of) => Promise.all(Array.from({ length: of.length }, (_, i) => of.make(i)));

    const work = (i) => new Promise((resolve, reject) => {
        const worker = new Worker(self, { workerData: i });
        worker.once('message', resolve).once('error', reject);
    });
    console.log('workers', digest(await results({ length: 20, make: work })));

    const key = promisify(pbkdf2);
    const keys = await results({ length: 50, make: (i) => key('x', `${i}`, 1000, 16, 'sha1') });
    console.log('pool', digest(keys.map((key) => key.toString('hex'))));
    const files = await results({ length: 100, make: () => readFile(self) });
    console.log('files', new Set(files.map((file) => file.length)).size);

    const server = createServer((request, response) => response.end(request.url));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const fetched = (i) => new Promise((resolve, reject) => {
        get({ port: server.address().port, host: '127.0.0.1', path: `/${i}` }, (response) => {
            let text = '';
            response.on('data', (data) => (text += data)).on('end', () => resolve(text));
        }).on('error', reject);
    });
    console.log('http', digest(await results({ length: 200, make: fetched })));
    server.close();
    console.log('processes', execSync('echo child').toString().trim());
    const endless = new Worker('for (;;);', { eval: true });
    await new Promise((resolve) => endless.once('online', resolve));
    console.log('terminated', await endless.terminate());
}
