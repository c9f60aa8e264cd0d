"""The permission of the inspection page: state alone, no table is made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Inspect",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "inspection",
                "verbose_name_plural": "inspect a search",
                "permissions": [("inspect_search", "Can inspect searches")],
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
