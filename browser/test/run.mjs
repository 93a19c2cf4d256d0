/**
 * Runs the cases of the engine in Chromium and Firefox. Needs `npm run build` and WordPress files (CODEBOX_WORDPRESS).
 *
 *   node test/run.mjs [SUITE…]     suites: unit, opaque, commands, failures, modes, blocked, firefox
 *
 * ONLY=expression runs the cases whose name matches. SCREENS=DIR keeps screenshots.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { summary } from './harness.mjs';

const here = dirname( fileURLToPath( import.meta.url ) );
const all = [ 'opaque', 'commands', 'failures', 'modes' ];
/** Suites with a browser of their own. */
const alone = [ 'unit', 'blocked', 'firefox' ];
const wanted = process.argv.length > 2 ? process.argv.slice( 2 ) : [ ...all, ...alone ];

if ( ! existsSync( join( here, '../dist/client.js' ) ) ) {
	console.log( 'FAIL browser/dist is missing; run: npm run build\nbrowser-engine: 0 passed, 1 failed' );
	process.exit( 1 );
}
if ( wanted.some( ( name ) => ! all.includes( name ) && ! alone.includes( name ) ) ) {
	throw new Error( `suites are ${ [ ...alone, ...all ].join( ', ' ) }` );
}
for ( const name of alone.filter( ( one ) => wanted.includes( one ) ) ) {
	await ( await import( `./cases-${ name }.mjs` ) ).default();
}
if ( all.some( ( name ) => wanted.includes( name ) ) ) {
	const { world } = await import( './world.mjs' );
	const shared = await world();
	try {
		for ( const name of all.filter( ( one ) => wanted.includes( one ) ) ) {
			await ( await import( `./cases-${ name }.mjs` ) ).default( shared );
			await shared.closePages();
		}
	} finally {
		await shared.close();
	}
}
process.exitCode = summary();
