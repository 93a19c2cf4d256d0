/**
 * The fake client module of the page tests: starts a session whose site is one HTML document made from the files.
 */
import { fakeClient } from '../fake-client.mjs';

const root = '/wordpress/wp-content/plugins/demo';
const archive = {
	[ `${ root }/demo.php` ]: '<?php\n/**\n * Plugin Name: Demo\n */\n\nadd_action( \'wp_footer\', function () {\n\techo \'<p>Hello</p>\';\n} );\n',
	[ `${ root }/readme.txt` ]: '=== Demo ===\r\nA plugin.\r\nWindows line ends.\r\n',
	[ `${ root }/logo.bin` ]: new Uint8Array( [ 0, 1, 2, 255 ] ),
	[ `${ root }/includes/class-widget.php` ]: '<?php\nclass Widget {\n\tpublic $a = 1;\n}\n',
	[ `${ root }/includes/übersicht.php` ]: '<?php\n// non-ASCII name\n',
	[ `${ root }/assets/js/demo.js` ]: 'console.log( 1 );\n',
};

export async function startPlaygroundWeb( { iframe, onProgress, blueprint } ) {
	globalThis.starts = ( globalThis.starts ?? 0 ) + 1;
	const plan = globalThis.plan ?? {};
	const stages = [ 'download', 'runtime', 'files', 'install', 'roots', 'blueprint', 'open' ];
	for ( const [ index, stage ] of stages.entries() ) {
		onProgress( { stage, fraction: index / stages.length } );
		await plan.stage?.( stage );
	}
	if ( plan.notice ) {
		onProgress( { stage: 'notice', fraction: 1, notice: plan.notice } );
	}
	if ( plan.fail ) {
		throw Object.assign( new Error( plan.fail.message ), plan.fail );
	}
	const text = ( bytes ) => new TextDecoder().decode( bytes );
	const client = fakeClient( { ...archive, ...plan.archive }, {
		show: ( path, self ) => {
			const code = text( self.files.get( `${ root }/demo.php` ) ?? new Uint8Array() );
			const said = /echo '([^']*)'/.exec( code )?.[ 1 ] ?? '';
			iframe.srcdoc = `<!doctype html><title>Site</title><body style="font-family:serif;margin:24px"><h1>My sandbox</h1><p>${ path }</p>${ said }</body>`;
		},
		client: plan.client,
	} );
	globalThis.fake = client;
	globalThis.blueprint = blueprint;
	await client.goTo( '/' );
	onProgress( { stage: 'ready', fraction: 1 } );
	return client;
}
