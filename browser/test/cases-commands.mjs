/** Commands, files, requests and blueprints of a running sandbox. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { holds, same, test } from './harness.mjs';
import { assets, fileOf, wordpressVersion, zip } from './server.mjs';
import { call, exec, siteFrame, start } from './world.mjs';

const root = '/wordpress/wp-content/plugins/sample';

export default async function cases( { page: open, origin, site } ) {
	let page;

	await test( 'commands: the steps of a blueprint are carried out in order', async () => {
		page = await open();
		site.own.set( '/files/extra.zip', Buffer.from( zip( { 'extra/extra.php': new TextEncoder().encode( '<?php /* Plugin Name: Extra */ add_action( "wp_footer", static function () { echo "<p id=\\"extra\\">extra</p>"; } );' ) } ) ) );
		const answer = await start( page, origin, { scope: 'commands', blueprint: {
			landingPage: '/?p=1',
			login: true,
			siteOptions: { blogname: 'Named by the blueprint' },
			constants: { FROM_BLUEPRINT: 'yes' },
			steps: [
				{ step: 'mkdir', path: '/wordpress/made' },
				{ step: 'writeFile', path: '/wordpress/made/a.txt', data: 'text' },
				{ step: 'writeFiles', writeToPath: '/wordpress/made', filesTree: { resource: 'literal:directory', name: 'x', files: { 'b.txt': 'b', deep: { files: { 'c.txt': 'c' } } } } },
				{ step: 'cp', fromPath: '/wordpress/made/a.txt', toPath: '/wordpress/made/copy.txt' },
				{ step: 'mv', fromPath: '/wordpress/made/copy.txt', toPath: '/wordpress/made/moved.txt' },
				{ step: 'rm', path: '/wordpress/made/a.txt' },
				{ step: 'activatePlugin', pluginPath: '/wordpress/wp-content/plugins/sample/sample.php' },
				{ step: 'installPlugin', pluginData: { resource: 'url', url: `${ origin }/files/extra.zip` } },
				{ step: 'defineWpConfigConsts', consts: { FROM_STEP: 7 } },
				{ step: 'runPHP', code: '<?php require "/wordpress/wp-load.php"; update_option( "from_php", FROM_BLUEPRINT . FROM_STEP );' },
				{ step: 'wp-cli', command: 'wp option update blogdescription "By the command line"' },
			],
		} } );
		same( true, answer.ok, JSON.stringify( answer ) );
		same( [ 'b.txt', 'deep', 'moved.txt' ], ( await call( page, 'listFiles', '/wordpress/made' ) ).value.sort() );
		const ran = await call( page, 'run', { code: '<?php require "/wordpress/wp-load.php"; echo json_encode( array_map( "get_option", array( "blogname", "from_php", "blogdescription" ) ) );' } );
		same( '["Named by the blueprint","yes7","By the command line"]', ran.value.text );
		const frame = siteFrame( page, 'commands' );
		same( [ 'extra', 1 ], [ await frame.locator( '#extra' ).innerText(), await frame.locator( '#wpadminbar' ).count() ], 'the installed plugin is active and the visitor is logged in' );
		same( '/?p=1', await page.evaluate( () => window.client.getCurrentURL() ).then( ( path ) => ( path.includes( 'hello-world' ) ? '/?p=1' : path ) ) );
	} );

	await test( 'commands: an unknown step, a failing step and a file of another host have their own codes', async () => {
		const run = ( steps ) => call( page, 'runBlueprint', { steps } );
		const unknown = await run( [ { step: 'mkdir', path: '/tmp/x' }, { step: 'teleport' } ] );
		same( [ 'wp_codebox_browser_step_unsupported', 'Step 2 (teleport) is not supported here.' ], [ unknown.code, unknown.message ] );
		const failing = await run( [ { step: 'runPHP', code: '<?php no_such_function();' } ] );
		same( 'wp_codebox_browser_step_failed', failing.code );
		holds( failing.message, failing.message.includes( 'no_such_function' ) );
		const elsewhere = await run( [ { step: 'installPlugin', pluginData: { resource: 'url', url: 'https://other.example/x.zip' } } ] );
		same( 'wp_codebox_browser_step_unsupported', elsewhere.code );
		same( 'wp_codebox_browser_step_unsupported', ( await run( [ { step: 'installPlugin', pluginData: { resource: 'wordpress.org/plugins', slug: 'x' } } ] ) ).code );
		same( 'wp_codebox_browser_step_unsupported', ( await call( page, 'runBlueprint', { sitemap: true } ) ).code );
		same( undefined, ( await run( [ { step: 'mkdir', path: '/tmp/y' } ] ) ).code, 'control' );
	} );

	await test( 'commands: file tools read and change files below the first root', async () => {
		same( `${ root }\n`, ( await exec( page, 'pwd' ) ).stdout );
		await call( page, 'writeFile', `${ root }/test.txt`, 'hello\nsecond line\nthird\n' );
		same( 'hello\nsecond line\nthird\n', ( await exec( page, 'cat', [ 'test.txt' ] ) ).stdout );
		same( 'dot.png\nsample.css\nsample.js\nsample.php\ntest.txt\n', ( await exec( page, 'ls' ) ).stdout );
		holds( 'ls -la has sizes', /-rw\S+ +24 .* test\.txt/.test( ( await exec( page, 'ls -la' ) ).stdout ) );
		same( 'hello\n', ( await exec( page, 'head', [ '-n', '1', 'test.txt' ] ) ).stdout );
		same( 'third\n', ( await exec( page, 'tail', [ '-1', 'test.txt' ] ) ).stdout );
		same( '3 test.txt\n', ( await exec( page, 'wc', [ '-l', 'test.txt' ] ) ).stdout );
		same( '2:second line\n', ( await exec( page, 'grep', [ '-n', 'SECOND', '-i', 'test.txt' ] ) ).stdout );
		same( 1, ( await exec( page, 'grep', [ 'absent', 'test.txt' ] ) ).exitCode );
		same( 'sub/a.txt\n', ( await exec( page, 'mkdir', [ '-p', 'sub' ] ), await exec( page, 'cp', [ 'test.txt', 'sub/a.txt' ] ), await exec( page, 'find', [ 'sub', '-type', 'f' ] ) ).stdout );
		same( 0, ( await exec( page, 'mv', [ 'sub/a.txt', 'sub/b.txt' ] ) ).exitCode );
		same( 0, ( await exec( page, 'touch', [ 'sub/c.txt' ] ) ).exitCode );
		same( [ 'b.txt', 'c.txt' ], ( await call( page, 'listFiles', `${ root }/sub` ) ).value.sort() );
		same( [ 1, 'rm: sub: is a directory\n' ], Object.values( await exec( page, 'rm', [ 'sub' ] ) ).filter( ( one, at ) => 0 === at || 2 === at ) );
		same( 0, ( await exec( page, 'rm', [ '-r', 'sub' ] ) ).exitCode );
		same( 'a  b\n', ( await exec( page, 'echo', [ 'a ', 'b' ] ) ).stdout );
		same( [ 1, 'cat: absent: No such file or directory\n' ], [ ( await exec( page, 'cat', [ 'absent' ] ) ).exitCode, ( await exec( page, 'cat', [ 'absent' ] ) ).stderr ] );
		await exec( page, 'rm', [ 'test.txt' ] );
	} );

	await test( 'commands: php runs code and files with arguments, streams and exit status', async () => {
		same( '3', ( await exec( page, 'php', [ '-r', 'echo 1 + 2;' ] ) ).stdout );
		const failing = await exec( page, 'php', [ '-r', 'fwrite( STDERR, "to stderr" ); exit( 3 );' ] );
		same( [ 3, 'to stderr' ], [ failing.exitCode, failing.stderr ] );
		await call( page, 'writeFile', `${ root }/args.php`, '<?php echo getcwd(), "|", implode( ",", $argv ), "|", $argc;' );
		same( `${ root }|args.php,one,two words|3`, ( await exec( page, 'php', [ 'args.php', 'one', 'two words' ] ) ).stdout );
		same( 0, ( await exec( page, 'php -l args.php' ) ).exitCode );
		await call( page, 'writeFile', `${ root }/args.php`, '<?php echo (' );
		same( 255, ( await exec( page, 'php', [ '-l', 'args.php' ] ) ).exitCode );
		holds( 'php -v', ( await exec( page, 'php', [ '-v' ] ) ).stdout.startsWith( 'PHP 8.3.' ) );
		same( 1, ( await exec( page, 'php', [ 'absent.php' ] ) ).exitCode );
		await exec( page, 'rm', [ 'args.php' ] );
	} );

	await test( 'commands: output arrives in pieces while the command runs, each with the id of the execution', async () => {
		const run = await exec( page, 'php', [ '-r', 'for ( $i = 0; $i < 3; $i++ ) { echo "line $i\n"; flush(); usleep( 50000 ); }' ], { executionId: 'execution-7' } );
		same( [ 'line 0\nline 1\nline 2\n', [ 'execution-7' ] ], [ run.stdout, run.ids ] );
		holds( `several pieces (${ run.pieces })`, run.pieces >= 2 );
	} );

	await test( 'commands: wp answers a subset and says which', async () => {
		same( `${ wordpressVersion }\n`, ( await exec( page, 'wp core version' ) ).stdout );
		same( 'Named by the blueprint\n', ( await exec( page, 'wp', [ 'option', 'get', 'blogname' ] ) ).stdout );
		holds( 'plugin list', ( await exec( page, 'wp plugin list' ) ).stdout.includes( 'sample\tactive\t1.0' ) );
		same( 'admin', JSON.parse( ( await exec( page, 'wp user list --format=json' ) ).stdout )[ 0 ].user_login );
		same( '2', ( await exec( page, 'wp', [ 'eval', 'echo 1 + 1;' ] ) ).stdout );
		same( [ 'wp_codebox_browser_command_unsupported', 'wp_codebox_browser_command_unsupported' ], [ ( await exec( page, 'wp scaffold plugin x' ) ).code, ( await exec( page, 'wp option get blogname --quiet' ) ).code ] );
	} );

	await test( 'commands: what cannot work is refused with the reason', async () => {
		for ( const command of [ 'npm install', 'curl http://other.example/', 'ls | wc -l', 'cat a > b', 'bash', 'nonsense', 'ls -Z', 'php' ] ) {
			const answer = await exec( page, command );
			same( 'wp_codebox_browser_command_unsupported', answer.code, command );
			holds( `${ command }: ${ answer.message }`, answer.message.length > 20 && ( answer.hint ?? '' ).includes( 'Supported' ) );
		}
	} );

	await test( 'commands: PHP runs a file of core as it is now, after it was replaced and changed', async () => {
		const [ first, second ] = [ 'assets/script-loader-packages.php', 'blocks/blocks-json.php' ].map( ( name ) => `/wordpress/wp-includes/${ name }` );
		const include = async ( path ) => ( await call( page, 'run', { code: `<?php $value = @include "${ path }"; echo is_array( $value ) ? md5( serialize( $value ) ) : json_encode( $value );` } ) ).value.text;
		const texts = [ ( await call( page, 'readFileAsText', first ) ).value, ( await call( page, 'readFileAsText', second ) ).value ];
		const [ packages, blocks ] = [ await include( first ), await include( second ) ];
		holds( 'control: two arrays', 32 === packages.length && 32 === blocks.length && packages !== blocks );
		await call( page, 'mv', second, first );
		same( [ blocks, 'false' ], [ await include( first ), await include( second ) ], 'another file of core in its place' );
		for ( const number of [ 1, 2, 3 ] ) {
			await call( page, 'writeFile', first, `<?php return ${ number };` );
			same( String( number ), await include( first ), 'changes within a second' );
		}
		await call( page, 'writeFile', first, texts[ 0 ] );
		await call( page, 'writeFile', second, texts[ 1 ] );
		same( [ packages, blocks ], [ await include( first ), await include( second ) ], 'undone' );
	} );

	await test( 'commands: changed files name additions, changes and removals with their contents', async () => {
		same( [], ( await page.evaluate( async () => ( await window.client.changedFiles( 'plugins/sample' ) ).map( ( one ) => one.path ) ) ), 'before' );
		await call( page, 'writeFile', `${ root }/new/file.bin`, 'abc' );
		await call( page, 'run', { code: `<?php file_put_contents( "${ root }/sample.js", "changed" ); unlink( "${ root }/sample.css" );` } );
		same( [ [ 'plugins/sample/new/file.bin', 'added', null, 'abc' ], [ 'plugins/sample/sample.css', 'deleted', '#sample', null ], [ 'plugins/sample/sample.js', 'modified', 'documen', 'changed' ] ], await page.evaluate( async () => {
			const text = ( bytes ) => ( bytes ? new TextDecoder().decode( bytes ).slice( 0, 7 ) : null );
			return ( await window.client.changedFiles() ).map( ( one ) => [ one.path, one.status, text( one.before ), text( one.after ) ] );
		} ) );
		same( 'wp_codebox_browser_file_failed', ( await call( page, 'changedFiles', 'plugins/other' ) ).code );
	} );

	await test( 'commands: files and requests fail with a code and a sentence', async () => {
		same( 'wp_codebox_browser_file_failed', ( await call( page, 'readFileAsText', '/wordpress/absent' ) ).code );
		same( 'wp_codebox_browser_file_failed', ( await call( page, 'writeFile', 'relative', 'x' ) ).code );
		same( 'wp_codebox_browser_request_failed', ( await call( page, 'request', { url: 'http://other.example/' } ) ).code );
		const found = await call( page, 'request', { url: '/?rest_route=/sample/v1/who' } );
		same( [ 200, { user: false } ], [ found.value.httpStatusCode, JSON.parse( found.value.text ) ] );
		same( 404, ( await call( page, 'request', { url: '/wp-content/absent.css' } ) ).value.httpStatusCode );
		const failed = await call( page, 'run', { code: '<?php exit( 4 );' } );
		same( 4, failed.value.exitCode );
	} );

	await test( 'commands: addresses and paths convert into each other', async () => {
		const url = ( await call( page, 'pathToInternalUrl', '/wp-admin/?a=b' ) ).value;
		same( `${ origin }${ assets }site/commands/wp-admin/?a=b`, url );
		same( '/wp-admin/?a=b', ( await call( page, 'internalUrlToPath', url ) ).value );
		same( [ '/wordpress', `${ origin }${ assets }site/commands` ], await page.evaluate( async () => [ await window.client.documentRoot, await window.client.absoluteUrl ] ) );
	} );

	await test( 'commands: an overlay is a change of its archive', async () => {
		const base = Buffer.from( zip( { 'a.txt': new TextEncoder().encode( 'a' ), 'b.txt': new TextEncoder().encode( 'b' ), 'over/over.php': new TextEncoder().encode( '<?php' ) } ) );
		const over = Buffer.from( zip( { 'a.txt': new TextEncoder().encode( 'A' ), 'over/new.txt': new TextEncoder().encode( 'new' ) } ) );
		site.own.set( '/files/base.zip', base );
		site.own.set( '/files/over.zip', over );
		const phar = readFileSync( join( process.env.CODEBOX_SHARE ?? '/var/lib/wp-codebox-dev/share', 'wp-cli.phar' ) );
		site.own.set( '/files/wp-cli.phar', phar );
		const other = await open();
		const answer = await start( other, origin, { scope: 'overlay', blueprint: { steps: [] }, codebox: {
			wp_cli: fileOf( origin, '/files/wp-cli.phar', phar ),
			roots: [ { target: 'plugins/over', path: '/wordpress/wp-content/plugins/over', archive: fileOf( origin, '/files/base.zip', base ), overlay: { ...fileOf( origin, '/files/over.zip', over ), deleted: [ 'plugins/over/b.txt' ] } } ],
		} } );
		same( true, answer.ok, JSON.stringify( answer ) );
		same( [ 'plugins/over/a.txt modified', 'plugins/over/b.txt deleted', 'plugins/over/over/new.txt added' ], await other.evaluate( async () => ( await window.client.changedFiles() ).map( ( one ) => `${ one.path } ${ one.status }` ) ) );
		same( 'A', ( await exec( other, 'cat a.txt' ) ).stdout );

		const cli = await exec( other, 'wp', [ 'option', 'get', 'blogname' ] );
		same( [ 0, 'My WordPress Website\n' ], [ cli.exitCode, cli.stdout ], `WP-CLI itself: ${ JSON.stringify( cli ) }` );
		holds( 'a command that the subset does not have', ( await exec( other, 'wp post create --post_title=x --porcelain' ) ).stdout.trim().length > 0 );
		await other.close();
	} );
}
