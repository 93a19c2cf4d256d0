/** The page of a session of the sample plugin with the real engine. */

export const ROOT = '/wordpress/wp-content/plugins/sample';

/** Makes a parent site of `../server.mjs` (the module `parts`) serve the page and its REST answers; returns the page's address. */
export function enginePage( parent, parts ) {
	const origin = `http://127.0.0.1:${ parent.port }`;
	const base = origin + parts.assets;
	const settings = {
		client_module_url: `${ base }client.js`,
		remote_url: `${ base }remote.html`,
		scope: 'workbench',
		session: { session_id: 'browser-session-workbench' },
		blueprint_ref: 'prepared:x:' + '0'.repeat( 64 ),
		hydrate: { url: '/hydrate', nonce: 'n' },
		keep: { url: '/keep', nonce: 'n' },
		roots: [ { target: 'plugins/sample', path: ROOT, label: 'Sample' } ],
		isolation: 'opaque',
		can_keep: true,
		review_url: '/review?bundle=%s',
	};
	const blueprint = { landingPage: '/', login: true, steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' } ], codebox: parts.source( origin, { session_id: 'browser-session-workbench' } ) };
	parent.own.set( '/hydrate', JSON.stringify( { success: true, blueprint } ) );
	parent.own.set( '/keep', JSON.stringify( { success: true, artifact_id: 'artifact-bundle-sha256-' + '0'.repeat( 64 ) } ) );
	const styles = [ '/wp-includes/css/dashicons.css', '/wp-includes/css/buttons.css', '/wp-admin/css/common.css', '/wp-admin/css/forms.css' ].map( ( href ) => `<link rel="stylesheet" href="${ href }">` ).join( '' );
	parent.own.set(
		'/page.html',
		`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Browser sandbox</title>${ styles }<link rel="stylesheet" href="${ base }workbench.css"></head><body class="wp-admin wp-core-ui"><div id="wpbody-content" style="padding-left:20px"><div class="wrap"><h1>Browser sandbox: Sample</h1><div id="wp-codebox-browser"></div></div></div><script>window.wpCodeboxBrowserPage=${ JSON.stringify( settings ) }</script><script type="module" src="${ base }workbench.js"></script></body></html>`
	);
	return `${ origin }/page.html`;
}
