/**
 * Loads a TypeScript module of the workbench into node: node 20 does not read TypeScript, so esbuild bundles it first.
 */
import { build } from 'esbuild';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const source = fileURLToPath( new URL( '../../src/workbench/', import.meta.url ) );
export const vectors = fileURLToPath( new URL( '../../../tests/conformance/vectors/', import.meta.url ) );

let directory = null;

/** Returns the exports of a module below src/workbench. */
export async function load( name ) {
	directory ??= mkdtempSync( join( tmpdir(), 'workbench-' ) );
	const outfile = join( directory, name.replaceAll( '/', '-' ) + '.mjs' );
	await build( { entryPoints: [ join( source, name + '.ts' ) ], outfile, bundle: true, format: 'esm', platform: 'neutral', mainFields: [ 'module', 'main' ], logLevel: 'error' } );
	return import( pathToFileURL( outfile ).href );
}
