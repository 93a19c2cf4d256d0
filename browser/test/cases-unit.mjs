/** Parts of the engine without a browser: rewriting of documents, headers, archives, words of a command line. */
import { build } from 'esbuild';
import { zipSync } from 'fflate';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { holds, same, test } from './harness.mjs';

const here = dirname( fileURLToPath( import.meta.url ) );
const bytes = ( text ) => new TextEncoder().encode( text );
const site = 'https://site.example/wp-content/plugins/p/site/s';

/** Bundles the modules for Node. */
async function load() {
	const result = await build( { stdin: { contents: "export * from './rewrite.ts'; export * from './headers.ts'; export * from './unzip.ts'; export * from './packed-files.ts'; export * from './statics.ts'; export * from './handshake.ts'; export * from './sentence.ts'; export * from './frames.ts'; export { normalize } from './files.ts'; export { EngineError } from './api.ts';", resolveDir: join( here, '../src/engine' ), loader: 'ts' }, bundle: true, write: false, format: 'esm', platform: 'node', external: [ '@php-wasm/*' ], logLevel: 'error' } );
	return import( `data:text/javascript;base64,${ Buffer.from( result.outputFiles[ 0 ].text ).toString( 'base64' ) }` );
}

export default async function cases() {
	const engine = await load();
	const statics = { includes: 'https://site.example/wp-includes/', admin: 'https://site.example/wp-admin/', themes: 'https://site.example/wp-content/themes/' };
	const files = new Map();
	const changed = new Set();
	const rewriter = new engine.DocumentRewriter( site, statics, {
		read: ( path ) => files.get( path ) ?? null,
		unchanged: ( path ) => ! changed.has( path ) && ! path.startsWith( '/wp-content/plugins/' ),
		fetchStatic: async ( path ) => ( path.includes( 'absent' ) ? null : bytes( `fetched ${ path }` ) ),
		respond: async ( path ) => ( path.startsWith( '/made.php' ) ? { type: 'text/css', bytes: bytes( 'made{}' ) } : null ),
	} );
	/** Rewrites a piece of a document and leaves out the script that comes first. */
	const html = async ( text ) => ( await rewriter.html( text, `${ site }/page/` ) ).replace( /^<script>\( \(\) => \{[\s\S]*?\}\s*\)\(\);<\/script>/, '' );
	const data = ( type, text ) => `data:${ type };charset=utf-8;base64,${ Buffer.from( text ).toString( 'base64' ) }`;
	files.set( '/wp-includes/css/x.css', bytes( 'x{background:url(img.png)}' ) );
	files.set( '/wp-content/plugins/a/a.css', bytes( '@import "b.css"; a{background:url("i.png?v=1")}' ) );
	files.set( '/wp-content/plugins/a/b.css', bytes( 'b{}' ) );
	files.set( '/wp-content/plugins/a/i.png', bytes( 'png' ) );
	files.set( '/wp-content/plugins/a/a.js', bytes( 'a()' ) );

	await test( 'unit: an unchanged core file becomes the copy of the parent, with its query', async () => {
		same( `<link rel="stylesheet" href="https://site.example/wp-includes/css/x.css?ver=1&amp;a=2">`, await html( `<link rel='stylesheet' href='${ site }/wp-includes/css/x.css?ver=1&#038;a=2'>`.replaceAll( "'", '"' ) ) );
		same( '<script src="https://site.example/wp-includes/js/y.js"></script>', await html( '<script src="../wp-includes/js/y.js"></script>' ), 'a script that the archive leaves out' );
		changed.add( '/wp-includes/css/x.css' );
		same( `<link rel="stylesheet" href="${ data( 'text/css', 'x{background:url("https://site.example/wp-includes/css/img.png")}' ) }">`, await html( `<link rel="stylesheet" href="${ site }/wp-includes/css/x.css">` ), 'control: a changed one becomes data' );
		changed.clear();
	} );

	await test( 'unit: a style of a plugin becomes data, with what it includes', async () => {
		const image = `data:image/png;base64,${ Buffer.from( 'png' ).toString( 'base64' ) }`;
		same( `<link rel="stylesheet" href="${ data( 'text/css', `@import url("${ data( 'text/css', 'b{}' ) }"); a{background:url("${ image }")}` ) }">`, await html( '<link rel="stylesheet" href="/wp-content/plugins/p/site/s/wp-content/plugins/a/a.css?ver=3">' ) );
		same( `<script src="${ data( 'text/javascript', 'a()' ) }" defer></script>`, await html( `<script src="${ site }/wp-content/plugins/a/a.js" defer></script>` ) );
		same( `<img srcset="${ image } 1x, ${ image } 2x" src="${ image }">`, await html( `<img srcset="${ site }/wp-content/plugins/a/i.png 1x, ${ site }/wp-content/plugins/a/i.png 2x" src="${ site }/wp-content/plugins/a/i.png">` ) );
		same( `<p style="background:url(&quot;${ image }&quot;)">`, await html( `<p style="background:url('${ site }/wp-content/plugins/a/i.png')">` ) );
	} );

	await test( 'unit: fonts and modules become data; what PHP makes is asked of PHP', async () => {
		const module = data( 'text/javascript', 'fetched /wp-includes/js/m.js' );
		same( `<script type="module" src="${ module }"></script>`, await html( `<script type="module" src="${ site }/wp-includes/js/m.js"></script>` ) );
		same( `<script type="importmap">{"imports":{"m":"${ module }"}}</script>`, await html( `<script type="importmap">{"imports":{"m":"${ site }/wp-includes/js/m.js"}}</script>` ) );
		holds( 'font', ( await html( `<style>@font-face{src:url(${ site }/wp-content/themes/t/f.woff2)}</style>` ) ).includes( 'data:font/woff2;base64,' ) );
		same( `<link rel="stylesheet" href="${ data( 'text/css', 'made{}' ) }">`, await html( `<link rel="stylesheet" href="${ site }/made.php?x=1">` ) );
	} );

	await test( 'unit: addresses in scripts, plain and escaped, and everything else stays', async () => {
		same( '<script>a="https://site.example/wp-includes/js/t.gif";b="https:\\/\\/site.example\\/wp-admin\\/images\\/x.png";c="https://site.example/wp-includes/js/tinymce"</script>', await html( `<script>a="${ site }/wp-includes/js/t.gif";b="${ `${ site }/wp-admin/images/x.png`.replaceAll( '/', '\\/' ) }";c="${ site }/wp-includes/js/tinymce"</script>` ) );
		for ( const text of [ `<a href="${ site }/x/">x</a>`, '<img src="https://other.example/a.png">', '<!-- <img src="a.png"> -->', `<script>x="<img src='${ site }/wp-content/plugins/a/i.png'>"</script>`, `<script type="application/x">${ site }/wp-includes/js/t.gif</script>`, '<img src="data:image/png;base64,AA==">', '<p title="a > b" data-src="x">' ] ) {
			same( text, await html( text ) );
		}
		same( '<iframe data-codebox-src="x/?a&amp;b" title="t"></iframe><iframe src="about:blank"></iframe><iframe srcdoc="<p>"></iframe>', await html( '<iframe src="x/?a&amp;b" title="t"></iframe><iframe src="about:blank"></iframe><iframe srcdoc="<p>"></iframe>' ), 'frames get their documents from the script' );
		same( '', await html( '<link rel="dns-prefetch" href="//s.w.org"><link rel="modulepreload" href="x.js">' ) );
	} );

	await test( 'unit: the policy of an answer cannot be loosened', async () => {
		const settings = { opaque: true, coep: false, site: new URL( `${ site }/` ) };
		const headers = engine.answerHeaders( [ [ 'Content-Type', 'text/html' ], [ 'Set-Cookie', 'a=b' ], [ 'X-Frame-Options', 'DENY' ], [ 'Content-Security-Policy', "frame-ancestors 'none'; script-src 'self', sandbox allow-same-origin" ], [ 'Clear-Site-Data', '"*"' ], [ 'Service-Worker-Allowed', '/' ], [ 'Report-To', '{}' ], [ 'X-WP-Total', '1' ] ], settings );
		same( [ 'content-security-policy', 'content-type', 'cross-origin-resource-policy', 'x-wp-total' ], [ ...headers.keys() ] );
		const policy = headers.get( 'content-security-policy' );
		holds( policy, policy.startsWith( "script-src 'self', default-src https://site.example" ) && policy.endsWith( 'sandbox allow-scripts allow-forms' ) && ! /allow-same-origin|frame-ancestors/.test( policy ) );
		const full = engine.answerHeaders( [], { ...settings, opaque: false, coep: true } );
		holds( 'full mode', ! full.get( 'content-security-policy' ).includes( 'sandbox' ) && 'credentialless' === full.get( 'cross-origin-embedder-policy' ) );
	} );

	await test( 'unit: combinations of hosts', async () => {
		const check = ( page, remote, isolation ) => {
			try {
				engine.checkIsolation( new URL( page ), new URL( remote ), isolation );
				return 'works';
			} catch ( thrown ) {
				return thrown.code;
			}
		};
		const refused = 'wp_codebox_browser_remote_refused';
		same( [ 'works', refused, refused, 'works', refused, refused ], [
			check( 'https://a.example/', 'https://a.example/r', 'opaque' ), check( 'https://a.example/', 'https://b.example/r', 'opaque' ), check( 'https://a.example/', 'https://a.example:444/r', 'opaque' ),
			check( 'https://a.example/', 'https://b.example/r', 'separate-host' ), check( 'https://a.example/', 'https://a.example/r', 'separate-host' ), check( 'https://a.example/', 'https://a.example:444/r', 'separate-host' ),
		] );
	} );

	await test( 'unit: only static files of core and themes have a copy at the parent', async () => {
		const url = ( path ) => engine.parentUrl( statics, path );
		same( [ 'https://site.example/wp-includes/js/a.js', 'https://site.example/wp-content/themes/t/a b.png' ], [ url( '/wp-includes/js/a.js' ), url( '/wp-content/themes/t/a b.png' ) ] );
		same( [ null, null, null, null, null, null ], [ url( '/wp-admin/admin-ajax.php' ), url( '/wp-admin/css/colors' ), url( '/wp-content/uploads/a.png' ), url( '/wp-includes/../wp-config.js' ), url( '/wp-includes/a.js?x=y.js' ), url( '/wp-content/plugins/a/a.js' ) ] );
	} );

	await test( 'unit: archives cannot leave their directory', async () => {
		same( [ true, true, false, false, false, false, false ], [ 'a', 'a/b.php', '../a', 'a/../b', '/a', 'a\\b', 'a//b' ].map( engine.safeName ) );
		same( [ 'plugins/a/x.php', 'plugins/a/a/y.php' ], [ ...engine.byTarget( new Map( [ [ 'x.php', bytes( '' ) ], [ 'a/y.php', bytes( '' ) ] ] ), 'plugins/a' ).keys() ] );
		same( [ [ 'plugins/a.php' ], [ 'plugins/a.php' ], [] ], [ 'plugins/a.php', 'a.php', 'b.php' ].map( ( name ) => [ ...engine.byTarget( new Map( [ [ name, bytes( '' ) ] ] ), 'plugins/a.php' ).keys() ] ) );
		same( [ '/a/c', '/', '/b' ], [ '/a/./b/../c', '/../..', '//b/' ].map( engine.normalize ) );
	} );

	await test( 'unit: files of an archive are unpacked one by one, and an archive that cannot be read is refused', async () => {
		const long = 'text '.repeat( 1000 );
		const archive = zipSync( { 'a.txt': bytes( long ), 'empty/': new Uint8Array(), 'b/c.txt': [ bytes( 'stored' ), { level: 0 } ] } );
		same( [ [ 'a.txt', 5000, long ], [ 'b/c.txt', 6, 'stored' ] ], [ ...engine.indexZip( archive, 'It' ) ].map( ( [ name, file ] ) => [ name, file.size, new TextDecoder().decode( file.unpack() ) ] ) );
		const file = engine.indexZip( archive, 'It' ).get( 'b/c.txt' );
		file.unpack().fill( 0 );
		same( 'stored', new TextDecoder().decode( file.unpack() ), 'a change of one copy is in no other' );
		/** Returns the code for the archive with other bytes in the header of the first entry. */
		const refused = ( given, at, ...values ) => {
			const changed = given.slice();
			values.forEach( ( value, index ) => {
				changed[ Buffer.from( given ).indexOf( 'PK\x01\x02' ) + at + index ] = value;
			} );
			try {
				engine.indexZip( changed, 'It' );
				return 'read';
			} catch ( thrown ) {
				return thrown.code;
			}
		};
		same( [ 'read', 'read' ], [ refused( archive, 0 ), refused( Buffer.concat( [ archive, bytes( 'a comment' ) ] ), 0 ) ], 'control, and bytes after the end, as a comment has' );
		const failed = 'wp_codebox_browser_boot_failed';
		same( [ failed, failed, failed, failed, failed, 'wp_codebox_browser_seed_too_large' ], [
			refused( archive.slice( 0, -1 ), 0 ), refused( new Uint8Array( 5 ), 0 ), refused( archive, 10, 99 ), refused( archive, 20, 0, 0, 1 ), refused( zipSync( { '../x': bytes( 'x' ) } ), 0 ), refused( archive, 24, 0, 0, 0, 0x20 ),
		], 'cut off, no archive, an unknown method, an entry behind the end, an unsafe name, too large' );
	} );

	await test( 'unit: a frame gets documents of its own site only, and follows redirects within it', async () => {
		const asked = [];
		const answers = { '/page': [ 200, { 'Content-Type': 'text/html' }, '<p>page</p>' ], '/moved': [ 302, { Location: 'page' }, '' ], '/again': [ 307, { location: `${ site }/page` }, '' ], '/out': [ 302, { location: 'https://other.example/' }, '' ], '/up': [ 301, { location: '../secret' }, '' ], '/loop': [ 302, { location: 'loop' }, '' ], '/x.png': [ 200, { 'content-type': 'image/png' }, 'x' ] };
		const ask = async ( request ) => {
			asked.push( [ request.method, request.url.slice( site.length ), request.framed, null === request.body ? null : new TextDecoder().decode( request.body ), request.headers[ 'content-type' ] ] );
			const [ status, headers, text ] = answers[ new URL( request.url ).pathname.slice( new URL( site ).pathname.length ) ];
			return { type: 'response', status, headers: Object.entries( headers ), body: bytes( text ) };
		};
		const shown = ( path, more = {} ) => engine.frameDocument( { url: path.includes( ':' ) ? path : site + path, method: 'GET', ...more }, { scope: 's', url: site }, ask );
		same( [ '<p>page</p>', '<p>page</p>' ], [ await shown( '/page#part' ), await shown( '/moved', { method: 'POST', body: bytes( 'a=b' ).buffer, contentType: 'text/plain' } ) ] );
		await shown( '/again', { method: 'POST', body: bytes( 'a=b' ).buffer, contentType: 'text/plain' } );
		same( [ [ 'GET', '/page', true, null, undefined ], [ 'POST', '/moved', true, 'a=b', 'text/plain' ], [ 'GET', '/page', true, null, undefined ], [ 'POST', '/again', true, 'a=b', 'text/plain' ], [ 'POST', '/page', true, 'a=b', 'text/plain' ] ], asked );
		asked.length = 0;
		for ( const path of [ 'https://other.example/', `${ site }er/page`, `${ site }/../secret`, 'https://site.example/wp-admin/' ] ) {
			holds( path, ( await shown( path ) ).includes( 'A frame of another site' ) );
		}
		same( [], asked );
		for ( const [ path, title ] of [ [ '/out', 'A frame of another site' ], [ '/up', 'A frame of another site' ], [ '/loop', 'Too many redirects' ], [ '/x.png', 'No page' ], [ 'no address', 'This frame has no page' ] ] ) {
			holds( path, ( await shown( path.startsWith( '/' ) ? path : 'http://[' ) ).includes( title ) );
		}
		holds( 'the Customizer', ( await shown( '/page?customize_messenger_channel=preview-0' ) ).includes( 'WP_CODEBOX_BROWSER_HOST' ) );
	} );

	await test( 'unit: texts of a sentence page are escaped', async () => {
		holds( 'escaped', ! engine.sentencePage( '<b>', '"<script>', 'https://x/"' ).includes( '<script>' ) );
	} );
}
