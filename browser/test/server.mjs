/** Loopback servers of the cases: a parent site that serves the built files, archives and its own static files. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { zipSync } from 'fflate';

const here = dirname( fileURLToPath( import.meta.url ) );
const dist = join( here, '../dist' );
export const wordpress = process.env.CODEBOX_WORDPRESS ?? '/var/lib/wp-codebox-dev/wordpress';
/** A path unlike that of any real site: the built files must work below every base path. */
export const assets = '/some/base/wp-content/plugins/wp-codebox/assets/browser/';
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.zip': 'application/zip', '.png': 'image/png', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

const sha256 = ( bytes ) => createHash( 'sha256' ).update( bytes ).digest( 'hex' );

function tree( directory, prefix, wanted ) {
	return readdirSync( directory, { withFileTypes: true } ).flatMap( ( one ) => {
		const path = join( directory, one.name );
		const name = prefix + one.name;
		return one.isDirectory() ? tree( path, `${ name }/`, wanted ) : one.isFile() && wanted( name ) ? [ [ name, new Uint8Array( readFileSync( path ) ) ] ] : [];
	} );
}

/** The core archive by the rules of the plugin: what PHP reads, no wp-config.php, one theme. */
function coreArchive() {
	const version = /\$wp_version = '([^']+)'/.exec( readFileSync( join( wordpress, 'wp-includes/version.php' ), 'utf8' ) )[ 1 ];
	const cache = join( process.env.CODEBOX_CORE_CACHE ?? tmpdir(), `codebox-core-2-${ version }.zip` );
	if ( ! existsSync( cache ) ) {
		const wanted = ( name ) => /\.(php|css|svg|json|html|txt|crt)$/.test( name ) || /wp-(emoji-loader|embed)[\w.-]*\.js$/.test( name );
		const files = [
			...tree( join( wordpress, 'wp-admin' ), 'wp-admin/', wanted ),
			...tree( join( wordpress, 'wp-includes' ), 'wp-includes/', wanted ),
			...tree( join( wordpress, 'wp-content/themes/twentytwentyfive' ), 'wp-content/themes/twentytwentyfive/', wanted ),
			...readdirSync( wordpress ).filter( ( name ) => name.endsWith( '.php' ) && 'wp-config.php' !== name ).map( ( name ) => [ name, new Uint8Array( readFileSync( join( wordpress, name ) ) ) ] ),
		];
		// Renamed when complete, because another run may read the archive at the same time.
		writeFileSync( `${ cache }.${ process.pid }`, zipSync( Object.fromEntries( files ), { level: 6, mtime: new Date( '2000-01-01T00:00:00' ) } ) );
		renameSync( `${ cache }.${ process.pid }`, cache );
	}
	return { bytes: readFileSync( cache ), version };
}

const { bytes: core, version } = coreArchive();
export { core };
export const wordpressVersion = version;
export const sample = Object.fromEntries( tree( join( here, 'sample' ), '', () => true ) );
export const zip = ( files ) => zipSync( files, { mtime: new Date( '2000-01-01T00:00:00' ) } );

/**
 * A parent site. `headers` are sent with every file, `pageHeaders` with its own pages; `files` adds or replaces files by path.
 * Like many web servers it sends files named `.gz` with `Content-Encoding: gzip`.
 */
export async function serve( { headers = {}, pageHeaders = {}, files = {} } = {} ) {
	const log = [];
	const own = new Map( Object.entries( { '/files/core.zip': core, '/files/sample.zip': Buffer.from( zip( sample ) ), ...files } ) );
	const server = createServer( ( request, response ) => {
		const { pathname } = new URL( request.url, 'http://localhost' );
		const entry = { method: request.method, path: request.url, cookie: request.headers.cookie ?? '', body: '' };
		log.push( entry );
		request.setEncoding( 'utf8' ).on( 'data', ( piece ) => {
			entry.body += piece;
		} );
		const path = decodeURIComponent( pathname );
		let body = own.get( path );
		if ( undefined === body && ! path.includes( '..' ) ) {
			const places = [ [ assets, dist ], [ '/wp-includes/', join( wordpress, 'wp-includes' ) ], [ '/wp-admin/', join( wordpress, 'wp-admin' ) ], [ '/wp-content/themes/', join( wordpress, 'wp-content/themes' ) ], [ '/test/', here ] ];
			const [ prefix, directory ] = places.find( ( [ start ] ) => path.startsWith( start ) ) ?? [];
			const file = undefined === directory ? '' : join( directory, path.slice( prefix.length ) );
			body = '' !== file && existsSync( file ) && statSync( file ).isFile() && ! file.endsWith( '.php' ) ? readFileSync( file ) : undefined;
		}
		const found = undefined !== body && null !== body;
		response.writeHead( found ? 200 : 404, { 'content-type': found ? types[ extname( path ) ] ?? 'application/octet-stream' : 'text/html', 'cache-control': 'no-cache', ...( found && path.endsWith( '.gz' ) ? { 'content-encoding': 'gzip' } : {} ), ...headers, ...( path.startsWith( '/test/' ) ? pageHeaders : {} ) } );
		response.end( found ? body : 'not found' );
	} );
	await new Promise( ( resolve ) => server.listen( 0, '127.0.0.1', resolve ) );
	const { port } = server.address();
	return { port, log, own, close: () => new Promise( ( resolve ) => {
		server.closeAllConnections();
		server.close( resolve );
	} ) };
}

/** A proxy that refuses every request and records its URL. */
export async function trap() {
	const asked = [];
	const server = createServer( ( request, response ) => {
		asked.push( request.url );
		response.writeHead( 502 );
		response.end();
	} );
	server.on( 'connect', ( request, socket ) => {
		asked.push( request.url );
		socket.end( 'HTTP/1.1 502 Bad Gateway\r\n\r\n' );
	} );
	await new Promise( ( resolve ) => server.listen( 0, '127.0.0.1', resolve ) );
	return { port: server.address().port, asked, close: () => new Promise( ( resolve ) => {
		server.closeAllConnections();
		server.close( resolve );
	} ) };
}

/** The part of a blueprint with the URLs and hashes of a parent site's files. */
export function source( origin, more = {} ) {
	const runtime = JSON.parse( readFileSync( join( dist, 'runtime.json' ), 'utf8' ) );
	const file = ( path, bytes ) => ( { url: origin + path, sha256: sha256( bytes ), bytes: bytes.byteLength } );
	return {
		core: { ...file( '/files/core.zip', core ), key: `wp-${ version }` },
		runtime: { base_url: `${ origin }${ assets }runtime/`, files: runtime.files },
		isolation: 'opaque',
		statics: { includes: `${ origin }/wp-includes/`, admin: `${ origin }/wp-admin/`, themes: `${ origin }/wp-content/themes/`, root: `${ origin }/` },
		session_id: 'browser-session-test',
		roots: [ { target: 'plugins/sample', path: '/wordpress/wp-content/plugins/sample', archive: file( '/files/sample.zip', Buffer.from( zip( sample ) ) ) } ],
		...more,
	};
}

export function fileOf( origin, path, bytes ) {
	return { url: origin + path, sha256: sha256( bytes ), bytes: bytes.byteLength };
}

/** Keeps a screenshot in the directory $SCREENS, if that is set. */
export async function shot( page, name ) {
	if ( process.env.SCREENS ) {
		await page.screenshot( { path: join( process.env.SCREENS, `${ name }.png` ) } );
	}
}
