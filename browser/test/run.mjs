/**
 * Runs the cases of the engine in Chromium. Needs `npm run build` and WordPress files (CODEBOX_WORDPRESS).
 *
 *   node test/run.mjs [SUITE…]     suites: unit, opaque, commands, failures, modes
 *
 * ONLY=expression runs the cases whose name matches. SCREENS=DIR keeps screenshots.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { summary } from './harness.mjs';

const here = dirname( fileURLToPath( import.meta.url ) );
const all = [ 'unit', 'opaque', 'commands', 'failures', 'modes' ];
const wanted = process.argv.length > 2 ? process.argv.slice( 2 ) : all;

if ( ! existsSync( join( here, '../dist/client.js' ) ) ) {
	console.log( 'FAIL browser/dist is missing; run: npm run build\nbrowser-engine: 0 passed, 1 failed' );
	process.exit( 1 );
}
if ( wanted.includes( 'unit' ) ) {
	await ( await import( './cases-unit.mjs' ) ).default();
}
if ( wanted.some( ( name ) => 'unit' !== name ) ) {
	const { world } = await import( './world.mjs' );
	const shared = await world();
	try {
		for ( const name of all.filter( ( one ) => 'unit' !== one && wanted.includes( one ) ) ) {
			await ( await import( `./cases-${ name }.mjs` ) ).default( shared );
			await shared.closePages();
		}
	} finally {
		await shared.close();
	}
}
process.exitCode = summary();
