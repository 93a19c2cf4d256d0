/**
 * Measures boots and memory: `node test/measure.mjs [RUNS] [firefox]`. Nothing here passes or fails; the numbers depend on
 * the machine and on what else it does.
 */
import { loadavg } from 'node:os';
import { execFileSync } from 'node:child_process';
import { firefox } from './firefox.mjs';
import { launch } from './harness.mjs';
import { assets, serve, source, trap } from './server.mjs';

const runs = Number( process.argv[ 2 ] ?? 3 );
const proxy = await trap();
const site = await serve( { headers: { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'credentialless', 'cross-origin-resource-policy': 'cross-origin' } } );
const browser = 'firefox' === process.argv[ 3 ] ? await firefox( proxy.port ) : await launch( proxy.port );
const newPage = () => browser.page?.() ?? browser.browser.contexts()[ 0 ].newPage();
const origin = `http://127.0.0.1:${ site.port }`;

/** Seconds of processor time of the browser so far: children are found by their parent. */
function processorSeconds() {
	const rows = execFileSync( 'ps', [ '-e', '-o', 'pid=,ppid=,cputimes=' ], { encoding: 'utf8' } ).trim().split( '\n' ).map( ( line ) => line.trim().split( /\s+/ ).map( Number ) );
	const family = new Set( [ browser.pid ] );
	for ( let grown = true; grown; ) {
		grown = false;
		for ( const [ pid, parent ] of rows ) {
			if ( family.has( parent ) && ! family.has( pid ) ) {
				family.add( pid );
				grown = true;
			}
		}
	}
	return rows.filter( ( [ pid ] ) => family.has( pid ) ).reduce( ( sum, row ) => sum + row[ 2 ], 0 );
}

try {
	for ( let run = 0; run < runs; run += 1 ) {
		for ( const kind of [ 'first', 'warm' ] ) {
			const page = await newPage();
			await page.goto( `${ origin }/test/page.html` );
			if ( 'first' === kind ) {
				await page.evaluate( () => caches.delete( 'wp-codebox-browser-v1' ) );
			}
			const before = processorSeconds();
			const answer = await page.evaluate( ( [ base, codebox, scope ] ) => window.start( base, { remoteUrl: `${ base }remote.html`, scope, blueprint: { codebox, steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' } ] } } ), [ assets, source( origin ), `m${ run }${ kind }` ] );
			const processor = processorSeconds() - before;
			const memory = await page.evaluate( async () => ( await performance.measureUserAgentSpecificMemory?.() )?.bytes ).catch( () => undefined );
			console.log( JSON.stringify( { kind, load: loadavg()[ 0 ].toFixed( 1 ), processorSeconds: processor, memoryMegabytes: memory && Math.round( memory / 1e6 ), ...( answer.ok ? answer.diagnostics.milliseconds : answer ) } ) );
			await page.evaluate( () => window.client?.destroy() );
			await page.close();
		}
	}
} finally {
	await browser.close();
	await site.close();
	await proxy.close();
}
