/**
 * Builds `dist/`: one flat folder that works under any path, and `dist/runtime/` with the big files.
 *
 *   node build.mjs [--sqlite DIR]    DIR: the SQLite integration plugin; default: CODEBOX_SQLITE, or the one
 *                                    that `tests/provision` installed
 */
import { build } from 'esbuild';
import { zipSync, gzipSync } from 'fflate';
import { constants, createDeflate } from 'node:zlib';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { licenses } from './licenses.mjs';

const here = dirname( fileURLToPath( import.meta.url ) );
const out = join( here, 'dist' );
const modules = join( here, 'node_modules' );
const read = ( path ) => JSON.parse( readFileSync( path, 'utf8' ) );
const engine = [ '@php-wasm/universal', '@php-wasm/web-8-3', '@php-wasm/util', '@php-wasm/logger', '@php-wasm/progress', '@php-wasm/stream-compression', '@wp-playground/common', '@wp-playground/wordpress' ];

/** Two versions of one of these packages would put two copies of PHP's file system code into the worker. */
function oneVersion() {
	const versions = new Map( engine.map( ( name ) => [ name, read( join( modules, name, 'package.json' ) ).version ] ) );
	if ( 1 !== new Set( versions.values() ).size ) {
		throw new Error( `these packages must have one version: ${ [ ...versions ].map( ( pair ) => pair.join( ' ' ) ).join( ', ' ) }` );
	}
	return [ ...versions.values() ][ 0 ];
}

/** Leaves out modules that are never loaded (other decoders, Node's threads), and replaces the wasm file by a name. */
const prune = {
	name: 'prune',
	setup( builder ) {
		builder.onResolve( { filter: /^worker_threads$|^events$|zstddec-stream/ }, ( { path } ) => ( { path, namespace: 'empty' } ) );
		builder.onLoad( { filter: /.*/, namespace: 'empty' }, () => ( { contents: 'export class ZSTDDecoder {} export class EventEmitter {}', loader: 'js' } ) );
		builder.onResolve( { filter: /php_8_3\.wasm$/ }, ( { path } ) => ( { path, namespace: 'wasm-name' } ) );
		builder.onLoad( { filter: /.*/, namespace: 'wasm-name' }, () => ( { contents: 'export default "php.wasm"', loader: 'js' } ) );
	},
};

const common = { bundle: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'none', loader: { '.php': 'text', '.css': 'css' }, plugins: [ prune ], metafile: true, logLevel: 'warning', absWorkingDir: here };

async function bundle( entry, name, more = {} ) {
	const result = await build( { ...common, entryPoints: [ entry ], outfile: join( out, name ), ...more } );
	return Object.keys( result.metafile.inputs );
}

/** Packs a file as a zlib stream: equal input gives equal bytes, and web servers do not mistake it for a content encoding. */
async function deflate( from, to ) {
	await pipeline( createReadStream( from ), createDeflate( { level: constants.Z_BEST_COMPRESSION } ), createWriteStream( to ) );
}

function tree( directory, prefix = '' ) {
	return readdirSync( directory, { withFileTypes: true } ).sort( ( a, b ) => ( a.name < b.name ? -1 : 1 ) ).flatMap( ( one ) => {
		const path = join( directory, one.name );
		return one.isDirectory() ? tree( path, `${ prefix }${ one.name }/` ) : one.isFile() ? [ [ prefix + one.name, path ] ] : [];
	} );
}

function sqliteDirectory() {
	const at = process.argv.indexOf( '--sqlite' );
	const home = process.env.CODEBOX_HOME ?? ( 0 === process.getuid?.() ? '/var/lib/wp-codebox-dev' : join( process.env.XDG_DATA_HOME ?? join( process.env.HOME ?? '', '.local/share' ), 'wp-codebox-dev' ) );
	const directory = at > 0 ? process.argv[ at + 1 ] : process.env.CODEBOX_SQLITE ?? join( process.env.CODEBOX_SHARE ?? join( home, 'share' ), 'sqlite-database-integration' );
	if ( ! directory || ! existsSync( join( directory, 'db.copy' ) ) ) {
		throw new Error( `the SQLite integration is not in ${ directory }; run make provision, or give --sqlite DIR` );
	}
	return directory;
}

/** Packs the files of the SQLite plugin that run, without its integrations with other tools. */
function sqliteZip( to ) {
	const fixed = { mtime: new Date( '2000-01-01T00:00:00' ), level: 9 };
	const files = Object.fromEntries( tree( sqliteDirectory() ).map( ( [ name, path ] ) => [ `sqlite-database-integration/${ name }`, [ new Uint8Array( readFileSync( path ) ), fixed ] ] ) );
	writeFileSync( to, zipSync( files, fixed ) );
}

const version = oneVersion();
rmSync( out, { recursive: true, force: true } );
mkdirSync( join( out, 'runtime' ), { recursive: true } );

const inputs = new Set();
const add = ( files ) => files.forEach( ( file ) => inputs.add( file ) );
add( await bundle( 'src/engine/client.ts', 'client.js' ) );
add( await bundle( 'src/engine/remote.ts', 'remote.js' ) );
add( await bundle( 'src/engine/worker.ts', 'worker.js' ) );
add( await bundle( 'src/engine/sw.ts', 'sw.js', { format: 'iife' } ) );
if ( existsSync( join( here, 'src/workbench/main.ts' ) ) ) {
	add( await bundle( 'src/workbench/main.ts', 'workbench.js' ) );
}
writeFileSync( join( out, 'remote.html' ), readFileSync( join( here, 'src/engine/remote.html' ) ) );

let php = '';
for ( const kind of [ 'jspi', 'asyncify' ] ) {
	const source = join( modules, '@php-wasm/web-8-3', kind );
	add( await bundle( relative( here, join( source, 'php_8_3.js' ) ), `php-${ kind }.js` ) );
	const [ release ] = readdirSync( source ).filter( ( name ) => /^8_3_\d+$/.test( name ) );
	php = release.replaceAll( '_', '.' );
	await deflate( join( source, release, 'php_8_3.wasm' ), join( out, 'runtime', `php-${ kind }.bin` ) );
}
sqliteZip( join( out, 'runtime', 'sqlite-database-integration.zip' ) );

const files = readdirSync( join( out, 'runtime' ) ).sort().map( ( name ) => {
	const bytes = readFileSync( join( out, 'runtime', name ) );
	return { name, bytes: bytes.byteLength, sha256: createHash( 'sha256' ).update( bytes ).digest( 'hex' ) };
} );
writeFileSync( join( out, 'runtime.json' ), `${ JSON.stringify( { schema: 'wp-codebox/browser-runtime-files/v1', php, packages: version, files }, null, '\t' ) }\n` );
writeFileSync( join( out, 'LICENSES.txt' ), licenses( here, inputs, join( sqliteDirectory(), 'LICENSE' ) ) );

for ( const [ name, path ] of tree( out ) ) {
	const packed = /\.(bin|zip)$/.test( name ) ? '' : ` (${ gzipSync( new Uint8Array( readFileSync( path ) ) ).byteLength } gzipped)`;
	console.log( `${ String( statSync( path ).size ).padStart( 9 ) }  ${ name }${ packed }` );
}
console.log( `built ${ resolve( out ) }: PHP ${ php }, packages ${ version }` );
