/**
 * A bundle from a browser in the admin screen: it is labelled as such, has no run, and needs a confirmation of its own to be applied.
 */
import { writeFileSync } from 'node:fs';
import { holds, plugin, read, same, soon, test, toggle } from './harness.mjs';

const FILE = '/wordpress/wp-content/plugins/sample/sample.php';
const UNCONFIRMED = 'wp_codebox_apply_browser_origin_unconfirmed';
const LABEL = 'I have read the change and confirm that it comes from a browser.';

export default async function ( browser, admin ) {
	const { page } = admin;
	const original = read( 'sample.php' );
	const edited = original.replace( 'helo', 'hello from a browser' );
	const dialog = page.getByRole( 'dialog' );
	let bundle;
	let run;

	/** Calls an ability like the page does; returns the code of its error, or '' when it succeeded. */
	const refusal = ( name, input ) => page.evaluate( ( [ ability, given ] ) => window.wpCodebox.api.call( ability, given ).then( () => '', ( thrown ) => thrown.code ), [ name, input ] );
	const approval = page.locator( '.wp-codebox-dialog button[type=submit]' );

	await test( 'origin: the page of a bundle from a browser names its origin and links to no run', async () => {
		toggle( { apply: 'direct' } );
		await admin.open();
		run = await admin.bundle( 'quick' );
		const session = await page.evaluate( async () => ( await fetch( '/wp-admin/admin-ajax.php?action=codebox_test_session' ) ).json() );
		bundle = await admin.ability( 'persist-browser-artifact', { session_id: session, files: [ { path: 'plugins/sample/sample.php', content: edited } ] } );
		await admin.open( '#/bundles/' + bundle.run_id );
		holds( 'the origin is named', ( await admin.words() ).includes( 'This host computed the difference, but it did not see the code run' ) );
		same( 0, await page.locator( `a[href*="#/runs/${ bundle.run_id }"]` ).count(), 'links to a run' );
		same( 0, await page.locator( '.wp-codebox-facts > div', { hasText: /^Run/ } ).count(), 'rows about a run' );
		await admin.accessible( 'a bundle from a browser' );
		await admin.picture( 'origin-bundle' );
		// Control: the bundle of a run links to it.
		await admin.go( '#/bundles/' + run.run );
		await page.locator( `a[href="#/runs/${ run.run }"]` ).waitFor();
		holds( 'the link is in the row of the run', 1 === await page.locator( '.wp-codebox-facts > div', { hasText: /^Run/ } ).locator( 'a' ).count() );
	} );

	await test( 'origin: the dialog approves only after its check box, and the server refuses an approval without it', async () => {
		await admin.open( '#/bundles/' + bundle.run_id );
		const approved = { artifact_id: bundle.run_id, approved_files: [ FILE ] };
		for ( const more of [ {}, { confirm_sensitive: true }, { confirm_browser_origin: false } ] ) {
			same( UNCONFIRMED, await refusal( 'apply-approved-artifact', { ...approved, ...more } ), `apply with ${ JSON.stringify( more ) }` );
			same( UNCONFIRMED, await refusal( 'review-artifact', { ...approved, ...more, action: 'approve' } ), `approval with ${ JSON.stringify( more ) }` );
		}
		await page.getByRole( 'checkbox', { name: 'sample.php' } ).check();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.waitFor();
		const box = dialog.getByRole( 'checkbox', { name: LABEL } );
		same( [ 1, false, true ], [ await box.count(), await box.isChecked(), await approval.isDisabled() ], 'check box, its state, locked button' );
		await admin.accessible( 'the confirmation of the origin' );
		await admin.picture( 'origin-dialog' );
		await box.check();
		same( false, await approval.isDisabled(), 'the button is unlocked' );
		await box.uncheck();
		same( [ true, original ], [ await approval.isDisabled(), read( 'sample.php' ) ], 'the button is locked again, and the file is unchanged' );
		await box.check();
		await approval.click();
		await page.getByText( '1 file was written.' ).first().waitFor();
		same( edited, read( 'sample.php' ), 'the applied file' );
		await admin.unharmed( 'origin' );
	} );

	await test( 'origin: taking the change back and the change of a run need no such confirmation', async () => {
		await admin.open( '#/bundles/' + bundle.run_id );
		await admin.button( 'Take back…' ).click();
		same( 0, await dialog.getByRole( 'checkbox' ).count(), 'check boxes of the question' );
		await dialog.getByRole( 'button', { name: 'Take back' } ).click();
		await soon( 'the file is restored', async () => original === read( 'sample.php' ) );
		await admin.open( '#/bundles/' + run.run );
		await page.getByRole( 'checkbox', { name: 'sample.php' } ).check();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.waitFor();
		same( [ 0, false ], [ await dialog.getByRole( 'checkbox' ).count(), await approval.isDisabled() ], 'check boxes and button' );
		await page.keyboard.press( 'Escape' );
	} );
	writeFileSync( plugin + '/sample.php', original );
	toggle();
}
